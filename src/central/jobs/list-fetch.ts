// Asks a server for a list that a customer named by its URL. Where the URL leads is judged at each fetch, by the address that is connected to, as with chat hooks
// (base/judged-lookup.ts). Redirects are not followed: the reason names where they lead.

import { request as httpRequest, type ClientRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { judgedLookup, type ResolveName } from "../../base/judged-lookup.ts";
import { hookUrlFault } from "../../core/addresses/public-address.ts";
import { messageOf } from "../../core/faults.ts";
import { retryAfterMs } from "../../core/http/retry-after.ts";

/** What the server said of the list that came last (RFC 9110 §8.8); null: nothing. */
export type ListTold = {
  readonly etag: string | null;
  readonly lastModified: string | null;
};

export type FetchedList =
  | { readonly kind: "unchanged" }
  /** Reading the body throws ListBroke. */
  | { readonly kind: "list"; readonly body: AsyncIterable<Uint8Array>; readonly told: ListTold }
  /** `waitMs`: the server asks to be left alone for so long. */
  | { readonly kind: "failed"; readonly reason: string; readonly waitMs?: number };

/** The list did not come whole. */
export class ListBroke extends Error {}
class AddressRefused extends Error {}

export type FetchOptions = {
  readonly mayBePrivate: boolean;
  /** What was told of the list that is held. Null: the whole list is wanted. */
  readonly held: ListTold | null;
  readonly signal: AbortSignal;
  /** The most milliseconds without a byte. */
  readonly silenceMs?: number;
  /** From when on a server must have sent fast enough, in milliseconds. */
  readonly slowAfterMs?: number;
  readonly resolve?: ResolveName;
};

/** A million lines with a comment each. */
const bytesMax = 96 * 1024 * 1024;
const silenceMsMost = 30_000;
/** A server that drips would hold its place for ever. */
const [slowMsMost, bytesPerSecondLeast] = [20_000, 1_024];
const waitMsMax = 86_400_000;
const textCharsMax = 300;

/** Never rejects. */
export async function fetchList(text: string, options: FetchOptions): Promise<FetchedList> {
  const { mayBePrivate, held, signal, silenceMs = silenceMsMost, resolve } = options;
  const { slowAfterMs = slowMsMost } = options;
  const fault = hookUrlFault(text, mayBePrivate);
  if (fault !== undefined) return { kind: "failed", reason: `the URL ${fault}` };
  const url = new URL(text);
  const { promise, resolve: settle } = Promise.withResolvers<FetchedList>();
  const ask = url.protocol === "https:" ? httpsRequest : httpRequest;
  const request = ask(url, {
    agent: false,
    signal,
    maxHeaderSize: 16_384,
    timeout: silenceMs,
    lookup: judgedLookup({
      mayBePrivate,
      refuse: (name) => new AddressRefused(`${name} leads to a private address`),
      ...(resolve !== undefined && { resolve }),
    }),
    headers: {
      accept: "text/plain, application/json, */*;q=0.5",
      "accept-encoding": "identity",
      "user-agent": "accel-central",
      ...(held?.etag != null && { "if-none-match": held.etag }),
      ...(held?.lastModified != null && { "if-modified-since": held.lastModified }),
    },
  });
  request.on("timeout", () =>
    request.destroy(new Error(`the server was silent for ${Math.round(silenceMs / 1e3)} s`)),
  );
  request.on("response", (response) => settle(answered(request, response, held, slowAfterMs)));
  request.on("error", (error) =>
    settle({ kind: "failed", reason: reasonOf(error, url.host).slice(0, textCharsMax) }),
  );
  request.end();
  return promise;
}

function answered(
  request: ClientRequest,
  response: IncomingMessage,
  held: ListTold | null,
  slowAfterMs: number,
): FetchedList {
  const { statusCode: status = 0, headers } = response;
  response.on("error", () => {});
  const failed = (reason: string, waitMs = 0): FetchedList => {
    request.destroy();
    return { kind: "failed", reason, ...(waitMs > 0 && { waitMs }) };
  };
  if (status === 304 && held !== null) {
    request.destroy();
    return { kind: "unchanged" };
  }
  if (status >= 300 && status < 400 && headers.location !== undefined)
    return failed(
      `the server answered ${status} and leads to ${headers.location.slice(0, textCharsMax)}; redirects are not followed, so name that URL if it is right`,
    );
  if (status !== 200)
    return failed(
      `the server answered ${status}`,
      Math.min(waitMsMax, retryAfterMs(headers["retry-after"], Date.now()) ?? 0),
    );
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding.toLowerCase() !== "identity")
    return failed(
      `the server sent the list encoded (${encoding.slice(0, 40)}), which it was not asked for`,
    );
  const told = { etag: shortOf(headers.etag), lastModified: shortOf(headers["last-modified"]) };
  return { kind: "list", body: bounded(response, slowAfterMs), told };
}

/** Says it in words that need no knowledge of systems, where there are some. */
function reasonOf(error: Error & { readonly code?: string }, host: string): string {
  switch (error.code) {
    case "ENOTFOUND":
      return `the name of ${host} is not known`;
    case "EAI_AGAIN":
      return `the name of ${host} could not be looked up`;
    case "ECONNREFUSED":
      return `${host} takes no connections`;
    case "ECONNRESET":
      return `${host} broke the connection off`;
    default:
      return messageOf(error);
  }
}

async function* bounded(
  response: IncomingMessage,
  slowAfterMs: number,
): AsyncGenerator<Uint8Array> {
  const beganMs = performance.now();
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > bytesMax)
        throw new ListBroke(`the list has more than ${bytesMax / 1024 / 1024} MiB`);
      const tookMs = performance.now() - beganMs;
      if (tookMs > slowAfterMs && bytes < (tookMs / 1_000) * bytesPerSecondLeast)
        throw new ListBroke(`the server sends less than ${bytesPerSecondLeast} bytes a second`);
      yield chunk;
    }
  } catch (error) {
    if (error instanceof ListBroke) throw error;
    throw new ListBroke(`the list broke off after ${bytes} bytes: ${messageOf(error)}`);
  }
}

function shortOf(value: string | undefined): string | null {
  return value !== undefined && value.length <= textCharsMax ? value : null;
}
