// HTTP towards central, through a proxy where HTTPS_PROXY names one: one bounded pool, TLS that cannot be switched off, a deadline on every phase, a limit
// on every answer.

import type { Readable } from "node:stream";
import { getCACertificates } from "node:tls";
import type { Agent as SecureAgent } from "node:https";
import type { Dispatcher } from "undici";
import { isOnThisHost, openDispatcher, tunnelAgent } from "../../base/proxy.ts";
import { parseJson } from "../../core/journal/json-text.ts";
import { AccelError } from "../../core/faults.ts";
import { describeErrors, type Decoder } from "../../wire/validate.ts";
import { readCentralTakes, takesHeader, type CentralTakes } from "../../wire/position.ts";
import { agentApiPrefix } from "../../wire/token.ts";
import { unreachable } from "./refusal.ts";

export type CentralTransportOptions = {
  readonly centralUrl: string;
  /** An authority that is trusted beside the system's. */
  readonly caPem?: string | undefined;
  readonly connectTimeoutMs?: number;
  /** The time to the first byte of an answer, and between two pieces of it. */
  readonly silenceMs?: number;
};

export type CentralRequest = {
  readonly method: "GET" | "POST" | "PUT";
  /** The path below `/agent-api/v1`, with its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | Readable | undefined;
  /** The time to wait beyond the usual silence, for a long poll. */
  readonly extraWaitMs?: number;
  readonly signal: AbortSignal;
};

// Enough for long poll, request logs, receipts and the parallel transfers of viewsets.
const connectionsMax = 32;
const refusalBytesMax = 65_536;

export class CentralTransport implements AsyncDisposable {
  /** The URL of the channel. */
  readonly channelUrl: URL;
  readonly ca: readonly string[] | undefined;
  /** What the channel goes through to reach central; if undefined, it needs nothing. */
  readonly channelAgent: SecureAgent | undefined;
  readonly #dispatcher: Dispatcher;
  readonly #origin: string;
  readonly #prefix: string;
  readonly #silenceMs: number;
  #takes = readCentralTakes(undefined);

  /** Throws SETTINGS_INVALID for plain http outside loopback. */
  constructor({
    centralUrl,
    caPem,
    connectTimeoutMs = 10_000,
    silenceMs = 30_000,
  }: CentralTransportOptions) {
    const url = new URL(centralUrl);
    if (url.protocol !== "https:" && !(url.protocol === "http:" && isOnThisHost(url.hostname))) {
      throw new AccelError(
        "SETTINGS_INVALID",
        `central_url ${centralUrl} must be https outside loopback`,
      );
    }
    this.#prefix = url.pathname.replace(/\/+$/, "") + agentApiPrefix;
    this.#silenceMs = silenceMs;
    this.ca = caPem === undefined ? undefined : [...getCACertificates("default"), caPem];
    this.channelUrl = new URL(`${this.#prefix}/channel`, url);
    this.channelUrl.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.channelAgent = tunnelAgent(url);
    this.#origin = url.origin;
    this.#dispatcher = openDispatcher(url, {
      connectTimeoutMs,
      silenceMs,
      connections: connectionsMax,
      tls: this.ca === undefined ? {} : { ca: [...this.ca] },
    });
  }

  /** What central takes, as the last answer said. */
  get takes(): CentralTakes {
    return this.#takes;
  }

  /**
   * Returns the answer, whatever its status; the caller reads or dumps its body. Throws CENTRAL_UNREACHABLE.
   */
  async send(exchange: CentralRequest): Promise<Dispatcher.ResponseData> {
    try {
      const answer = await this.#dispatcher.request({
        origin: this.#origin,
        method: exchange.method,
        path: this.#prefix + exchange.path,
        headers: { ...exchange.headers },
        body: exchange.body ?? null,
        headersTimeout: this.#silenceMs + (exchange.extraWaitMs ?? 0),
        signal: exchange.signal,
      });
      // The reader of a body meets its error; an error that nobody reads must not end the process.
      answer.body.on("error", () => undefined);
      this.#takes = readCentralTakes(answer.headers[takesHeader]);
      return answer;
    } catch (error) {
      throw unreachable(callName(exchange), error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispatcher.destroy();
  }
}

/** Names a call for messages, without its query. */
export function callName({ method, path }: Pick<CentralRequest, "method" | "path">): string {
  return `${method} ${agentApiPrefix}${path.split("?")[0] ?? ""}`;
}

/**
 * Reads a text of at most `bytesMax`. Throws MESSAGE_INVALID if it is longer, CENTRAL_UNREACHABLE when it
 * breaks off.
 */
export async function readText(
  answer: Dispatcher.ResponseData,
  bytesMax: number,
  what: string,
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of answer.body as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength;
      if (size > bytesMax)
        throw new AccelError("MESSAGE_INVALID", `${what}: the answer is over ${bytesMax} bytes`);
      chunks.push(chunk);
    }
  } catch (error) {
    throw unreachable(what, error);
  }
  return Buffer.concat(chunks).toString("utf8");
}

export async function readRefusal(answer: Dispatcher.ResponseData, what: string): Promise<string> {
  return readText(answer, refusalBytesMax, what);
}

/** Decodes an answer. Throws MESSAGE_INVALID with what is wrong in it. */
export function decodeAnswer<T>(decode: Decoder<T>, text: string, what: string): T {
  const raw = parseJson(text);
  if (raw === undefined) throw new AccelError("MESSAGE_INVALID", `${what}: the answer is no JSON`);
  const decoded = decode(raw);
  if (decoded.ok) return decoded.value;
  throw new AccelError(
    "MESSAGE_INVALID",
    `${what}: the answer is not valid: ${describeErrors(decoded.errors)}`,
  );
}
