// Calls with a token: one is asked for when there is none, and a call that met an expired token is repeated
// once with a new one.

import type { Dispatcher } from "undici";
import type { Name16 } from "../../core/ids.ts";
import { decodeTokenAnswer, nextSecretHeader, type TokenAnswer } from "../../wire/token.ts";
import type { Decoder } from "../../wire/validate.ts";
import { codeOf } from "../../core/faults.ts";
import { refusalBody, linkRefusal } from "./refusal.ts";
import type { SecretInUse } from "./site-secret.ts";
import {
  decodeAnswer,
  callName,
  readRefusal,
  readText,
  type CentralRequest,
  type CentralTransport,
} from "./transport.ts";

export type SessionOptions = {
  readonly name16: Name16;
  readonly secret: SecretInUse;
  /** Told when a new secret could not be taken. */
  readonly onSecretFailure?: (error: unknown) => void;
  readonly callTimeoutMs: number;
  /** Ends every call that is under way. */
  readonly stop: AbortSignal;
};

/** A request whose body is made anew each time it is sent. */
export type CentralCall = Omit<CentralRequest, "body"> & {
  readonly body?: () => CentralRequest["body"] | Promise<CentralRequest["body"]>;
};

export type CentralAnswer = {
  readonly answer: Dispatcher.ResponseData;
  /** The body, if it had to be read to know whether the token was at fault. */
  readonly refusal: string | undefined;
};

export const smallBytesMax = 65_536;

export class Session {
  readonly #transport: CentralTransport;
  readonly #options: SessionOptions;
  readonly #tokens: TokenSource;

  constructor(transport: CentralTransport, options: SessionOptions) {
    this.#transport = transport;
    this.#options = options;
    this.#tokens = new TokenSource(
      async () => this.#askToken(),
      () => performance.now(),
    );
  }

  async token(): Promise<AgentToken> {
    return this.#tokens.get();
  }

  discardToken(token: AgentToken): void {
    this.#tokens.discard(token);
  }

  /** Sends a call and returns any answer. Throws if no answer came or no token could be had. */
  async send(call: CentralCall): Promise<CentralAnswer> {
    for (let renewed = false; ; renewed = true) {
      const token = await this.#tokens.get();
      const { body, ...rest } = call;
      const answer = await this.#transport.send({
        ...rest,
        body: await body?.(),
        headers: { ...call.headers, authorization: `Bearer ${token.text}` },
      });
      if (answer.statusCode !== 401) return { answer, refusal: undefined };
      const refusal = await readRefusal(answer, callName(call));
      if (refusalBody(refusal)?.code !== "expired_token") return { answer, refusal };
      this.#tokens.discard(token);
      if (renewed) return { answer, refusal };
    }
  }

  /** Sends a call and returns a 2xx answer; throws any other as a refusal. */
  async accepted(call: CentralCall): Promise<Dispatcher.ResponseData> {
    const { answer, refusal } = await this.send(call);
    if (answer.statusCode >= 200 && answer.statusCode < 300) return answer;
    const what = callName(call);
    throw linkRefusal(answer.statusCode, refusal ?? (await readRefusal(answer, what)), what);
  }

  /** Sends a call and returns its whole answer, decoded, within the deadline of calls. */
  async json<T>(call: CentralCall, decode: Decoder<T>, bytesMax: number): Promise<T> {
    const signal = this.deadline(call.signal, call.extraWaitMs);
    const answer = await this.accepted({ ...call, signal });
    return decodeAnswer(decode, await readText(answer, bytesMax, callName(call)), callName(call));
  }

  bound(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([this.#options.stop, signal]);
  }

  deadline(signal: AbortSignal = this.#options.stop, extraMs = 0): AbortSignal {
    return AbortSignal.any([
      this.#options.stop,
      signal,
      AbortSignal.timeout(this.#options.callTimeoutMs + extraMs),
    ]);
  }

  async #askToken(): Promise<TokenAnswer> {
    const { name16, secret } = this.#options;
    const exchange: CentralRequest = {
      method: "POST",
      path: "/token",
      headers: {
        authorization: `Basic ${Buffer.from(`${name16}:${secret.value}`).toString("base64")}`,
        "content-type": "application/x-www-form-urlencoded",
        date: new Date().toUTCString(), // Central compares the clocks.
      },
      body: "grant_type=client_credentials",
      signal: this.deadline(),
    };
    const what = callName(exchange);
    const answer = await this.#transport.send(exchange);
    if (answer.statusCode !== 200) {
      const refusal = linkRefusal(answer.statusCode, await readRefusal(answer, what), what);
      if (codeOf(refusal) === "WRONG_SECRET16") secret.refused();
      throw refusal;
    }
    const text = await readText(answer, smallBytesMax, what);
    const token = decodeAnswer(decodeTokenAnswer, text, what);
    const next = answer.headers[nextSecretHeader];
    // The token is good whether or not the new secret can be kept; it comes again with the next token.
    if (typeof next === "string")
      await secret.replace(next).catch((error: unknown) => this.#options.onSecretFailure?.(error));
    return token;
  }
}

// The bearer token: it is asked for once however many callers need it, renewed at two thirds of its life, and
// used as long as it is good while central cannot be asked for another.

export type AgentToken = {
  readonly text: string;
  readonly deploymentSiteId: number;
  /** The epoch of central's store. */
  readonly epoch: string;
};

type Held = { readonly token: AgentToken; renewAtMs: number; readonly endsAtMs: number };

/** The pause after a failed renewal of a token that is still good. */
const renewPauseMs = 10_000;

export class TokenSource {
  readonly #ask: () => Promise<TokenAnswer>;
  readonly #nowMs: () => number;
  #held: Held | undefined;
  #asking: Promise<Held> | undefined;

  /** `nowMs` is monotonic. */
  constructor(ask: () => Promise<TokenAnswer>, nowMs: () => number) {
    this.#ask = ask;
    this.#nowMs = nowMs;
  }

  /** Returns a token that is good. Throws what `ask` threw. */
  async get(): Promise<AgentToken> {
    const held = this.#held;
    const nowMs = this.#nowMs();
    if (held !== undefined && nowMs < held.renewAtMs) return held.token;
    try {
      this.#asking ??= this.#renew().finally(() => {
        this.#asking = undefined;
      });
      return (await this.#asking).token;
    } catch (error) {
      const good = held !== undefined && held === this.#held && nowMs < held.endsAtMs;
      const code = codeOf(error);
      // A refused secret is reported at once, not when the last token has expired.
      if (!good || (code !== "CENTRAL_UNREACHABLE" && code !== "CENTRAL_REFUSED")) throw error;
      held.renewAtMs = nowMs + renewPauseMs;
      return held.token;
    }
  }

  /** Drops a token that central did not accept; a newer one stays. */
  discard(token: AgentToken): void {
    if (this.#held?.token === token) this.#held = undefined;
  }

  async #renew(): Promise<Held> {
    const askedAtMs = this.#nowMs();
    const answer = await this.#ask();
    const lifeMs = answer.expires_in * 1000;
    this.#held = {
      token: {
        text: answer.access_token,
        deploymentSiteId: answer.deployment_site_id,
        epoch: answer.epoch,
      },
      renewAtMs: askedAtMs + (lifeMs * 2) / 3,
      endsAtMs: askedAtMs + lifeMs,
    };
    return this.#held;
  }
}
