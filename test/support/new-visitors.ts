// Visitors who each come on a new connection, one every few milliseconds, whatever becomes of the edge. How each of them fared is counted in one word.

import { setTimeout as sleep } from "node:timers/promises";
import { systemCode } from "../../src/core/faults.ts";

const everyMs = 5;

export class NewVisitors {
  readonly #visit: () => Promise<number>;
  readonly #fared = new Map<string, number>();
  readonly #open = new Set<Promise<void>>();
  readonly #done = new AbortController();
  readonly #coming: Promise<void>;

  /** `visit`: resolves with a status, or throws as the connection failed. */
  constructor(visit: () => Promise<number>) {
    this.#visit = visit;
    this.#coming = this.#come();
  }

  /** How many fared so: by the status, or by the system's word for what failed. */
  get fared(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#fared);
  }

  /** Those that have neither an answer nor been refused yet. */
  get waiting(): number {
    return this.#open.size;
  }

  /** Nobody comes any more. */
  async leave(): Promise<void> {
    this.#done.abort();
    await this.#coming;
  }

  /** Resolves when all have fared somehow. */
  async end(): Promise<Readonly<Record<string, number>>> {
    await this.leave();
    await Promise.all(this.#open);
    return this.fared;
  }

  async #come(): Promise<void> {
    while (!this.#done.signal.aborted) {
      const one = this.#one();
      this.#open.add(one);
      void one.then(() => this.#open.delete(one));
      await sleep(everyMs);
    }
  }

  async #one(): Promise<void> {
    const fared = await this.#visit().then(
      String,
      (error: unknown) => systemCode(error) ?? String(error),
    );
    this.#fared.set(fared, (this.#fared.get(fared) ?? 0) + 1);
  }
}
