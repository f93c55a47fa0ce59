// Raises the health warning `rotated_secret_used` for hosts that go on signing in with the secret16 before, within its grace: when that ends they are shut out.
//
// A host is given the new secret with the answer to such a sign-in, and uses it from then on. So one sign-in with the one before says nothing. One
// that comes ten minutes later from the same address, without any by the new one in between, is of a host that does not take it, such as one of an earlier
// release. Where several hosts stand behind one address, those that took it may hide one that did not.
//
// It is over with the first sign-in by the new secret from there, or with the grace, which is looked at whenever somebody signs in.

import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import type { Name16 } from "../../core/ids.ts";

export const againMs = 600_000;
/** The most that are watched, and of these that are warned of, at one time. */
export const secretsWatchedMax = 1_000;
export const secretsWarnedMax = 100;

const code = "rotated_secret_used";
const hint =
  "Update accel-agent there: an earlier release does not learn the new secret16. Or write it into the file of the secret there and restart, or let the host join with a new code.";

export type RotatedSecretsDeps = {
  readonly health: Pick<Health, "raise" | "settle">;
  readonly log: Pick<Log, "warn" | "info">;
};

export type SignIn = {
  readonly name16: Name16;
  readonly address: string;
  /** The end of the grace of the secret before, if it was signed in with that one. */
  readonly graceEnds: string | undefined;
};

type Watched = { readonly firstMs: number; readonly graceEndsMs: number; isWarned: boolean };

export class RotatedSecrets {
  readonly #health: RotatedSecretsDeps["health"];
  readonly #log: RotatedSecretsDeps["log"];
  readonly #watched = new Map<string, Watched>();
  #warned = 0;

  constructor({ health, log }: RotatedSecretsDeps) {
    this.#health = health;
    this.#log = log;
  }

  /** Takes a sign-in that was good. `nowMs` is of the clock that graces are told by. */
  take({ name16, address, graceEnds }: SignIn, nowMs: number): void {
    for (const [key, { graceEndsMs }] of this.#watched) if (graceEndsMs <= nowMs) this.#end(key);
    const key = `${name16} ${address}`;
    if (graceEnds === undefined) return this.#end(key);
    const known = this.#watched.get(key);
    const graceEndsMs = Date.parse(graceEnds);
    if (known?.graceEndsMs !== graceEndsMs) {
      this.#end(key); // Of a rotation before.
      if (this.#watched.size >= secretsWatchedMax) return;
      this.#watched.set(key, { firstMs: nowMs, graceEndsMs, isWarned: false });
    } else if (
      !known.isWarned &&
      nowMs - known.firstMs >= againMs &&
      this.#warned < secretsWarnedMax
    ) {
      known.isWarned = true;
      this.#warned += 1;
      const text = `a host of ${name16} at ${address} signs in with the secret16 before the rotation; from ${graceEnds} on it is refused`;
      this.#log.warn({ code, name16, address }, text);
      this.#health.raise(code, "warning", text, hint, key);
    }
  }

  #end(key: string): void {
    const known = this.#watched.get(key);
    if (known === undefined) return;
    this.#watched.delete(key);
    if (!known.isWarned) return;
    this.#warned -= 1;
    this.#health.settle(code, key);
    this.#log.info({ code, host: key }, "settled");
  }
}
