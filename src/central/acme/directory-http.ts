// Requests to directories of ACME. Their URLs are customers' texts, and so are those that they answer: each must be https,
// and where it leads is judged on the address that is connected to. Redirects are not followed.

import { Agent, request as httpsRequest } from "node:https";
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { getCACertificates } from "node:tls";
import { judgedLookup, type ResolveName } from "../../base/judged-lookup.ts";
import { isPublicAddress } from "../../core/addresses/public-address.ts";
import { messageOf } from "../../core/faults.ts";
import { retryAfterMs } from "../../core/http/retry-after.ts";

export type DirectoryHttpSettings = {
  readonly version: string;
  /** Whether directories may lie in private networks. */
  readonly mayBePrivate: boolean;
  /** A further authority (PEM) that directories may be certified by. */
  readonly authority: string | undefined;
  readonly now: () => Date;
  /** Replaces the system's resolver. */
  readonly resolve?: ResolveName;
};

export type HttpAsked = {
  readonly method: "GET" | "HEAD" | "POST";
  readonly url: string;
  readonly body?: string;
};

export type HttpAnswered =
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly headers: IncomingMessage["headers"];
      readonly body: string;
      readonly retryAfterMs: number | undefined;
    }
  | { readonly kind: "unreachable"; readonly reason: string };

/** A chain of ten certificates is 60 KiB; an order of 100 names 20 KiB. */
const answerBytesMax = 1_048_576;
const timeoutMs = 30_000;
const connectionsMax = 8;

export class DirectoryHttp implements Disposable {
  readonly #settings: DirectoryHttpSettings;
  readonly #agent: Agent;

  constructor(settings: DirectoryHttpSettings) {
    const { authority, mayBePrivate, resolve } = settings;
    this.#settings = settings;
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: connectionsMax,
      lookup: judgedLookup({
        mayBePrivate,
        refuse: (name) => new Error(`${name} leads to a private address`),
        ...(resolve !== undefined && { resolve }),
      }),
      // Those that count without it, which an operator may have set for the whole process.
      ...(authority !== undefined && { ca: [...getCACertificates("default"), authority] }),
    });
  }

  /** Never rejects. */
  async ask({ method, url, body }: HttpAsked, signal: AbortSignal): Promise<HttpAnswered> {
    const { version, mayBePrivate } = this.#settings;
    const { promise, resolve } = Promise.withResolvers<HttpAnswered>();
    if (!URL.canParse(url))
      return { kind: "unreachable", reason: `${url.slice(0, 200)} is no URL` };
    const { protocol, hostname, host } = new URL(url);
    const notReached = (why: string): HttpAnswered => ({
      kind: "unreachable",
      reason: `the directory ${host} cannot be reached: ${why.slice(0, 500)}`,
    });
    if (protocol !== "https:") return { kind: "unreachable", reason: `${url} is not https` };
    // A literal address is connected to without a look-up.
    const literal = hostname.replace(/^\[(.*)\]$/, "$1");
    if (isIP(literal) !== 0 && !mayBePrivate && !isPublicAddress(literal))
      return notReached(`${literal} is a private address`);
    const ended = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const asked = httpsRequest(url, {
      method,
      agent: this.#agent,
      signal: ended,
      maxHeaderSize: 16_384,
      headers: {
        "user-agent": `accel-central/${version}`,
        "accept-language": "en",
        ...(body !== undefined && {
          "content-type": "application/jose+json",
          "content-length": Buffer.byteLength(body),
        }),
      },
    });
    asked.on("response", (response) => {
      this.#answered(response).then(resolve, (error: unknown) =>
        resolve({
          kind: "unreachable",
          reason: `what the directory ${host} answers cannot be read: ${messageOf(error).slice(0, 500)}`,
        }),
      );
    });
    asked.on("error", (error) =>
      resolve(notReached(ended.aborted ? "it does not answer in time" : messageOf(error))),
    );
    asked.end(body);
    return promise;
  }

  async #answered(response: IncomingMessage): Promise<HttpAnswered> {
    const body = await textOf(response);
    const { statusCode: status = 0, headers } = response;
    const wait = retryAfterMs(headers["retry-after"], this.#settings.now().getTime());
    return { kind: "answered", status, headers, body, retryAfterMs: wait };
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > answerBytesMax) {
      response.destroy();
      throw new Error(`the answer is longer than ${answerBytesMax} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
