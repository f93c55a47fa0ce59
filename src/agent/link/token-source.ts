// The bearer token: asked for once by however many need it, renewed at two thirds of its life, used on while it is good when central cannot be asked for another.

import { codeOf } from "../../core/faults.ts";
import type { TokenAnswer } from "../../wire/token.ts";

export type AgentToken = {
  readonly text: string;
  readonly deploymentSiteId: number;
  /** Of central's store. */
  readonly epoch: string;
};

type Held = { readonly token: AgentToken; renewAtMs: number; readonly endsAtMs: number };

/** After a failed renewal of a token that is still good. */
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

  /** Throws what `ask` threw. */
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
      // A refused secret is told at once, not when the last token has ended.
      if (!good || (code !== "CENTRAL_UNREACHABLE" && code !== "CENTRAL_REFUSED")) throw error;
      held.renewAtMs = nowMs + renewPauseMs;
      return held.token;
    }
  }

  /** Central did not take it; a newer one stays. */
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
