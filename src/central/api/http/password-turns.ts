// Passwords are verified one after the other: each takes 20 MiB and some 30 ms of a core. Who waits costs little, so that a flood of guesses from many addresses
// makes others wait, and does not turn them away; of one address only a few wait. Who was right before goes first.

import { addressGroups } from "../../../core/addresses/address-group.ts";

/** The most attempts that wait of an IPv4 address or a /48; whoever was right before is not counted. */
const waitingPerAddress = 8;
/** The most attempts that wait at all: half a minute. */
const waitingMax = 1_000;

export class PasswordTurns {
  readonly #known: (() => void)[] = [];
  readonly #others: (() => void)[] = [];
  readonly #byGroup = new Map<string, number>();
  #isTaken = false;

  /** Undefined, and nothing is run, where too many wait. */
  async run<T>(
    { address, isKnown }: { readonly address: string; readonly isKnown: boolean },
    verify: () => Promise<T>,
  ): Promise<T | undefined> {
    const group = isKnown ? undefined : (addressGroups(address).at(-1) ?? address);
    const waiting = group === undefined ? 0 : (this.#byGroup.get(group) ?? 0);
    const inAll = this.#known.length + (isKnown ? 0 : this.#others.length);
    if (waiting >= waitingPerAddress || inAll >= waitingMax) return undefined;
    if (group !== undefined) this.#byGroup.set(group, waiting + 1);
    try {
      await this.#turn(isKnown);
      return await verify();
    } finally {
      this.#end();
      if (group !== undefined) this.#leave(group);
    }
  }

  async #turn(isKnown: boolean): Promise<void> {
    if (!this.#isTaken) {
      this.#isTaken = true;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    (isKnown ? this.#known : this.#others).push(resolve);
    await promise; // It is handed over taken.
  }

  #end(): void {
    const next = this.#known.shift() ?? this.#others.shift();
    if (next === undefined) this.#isTaken = false;
    else next();
  }

  #leave(group: string): void {
    const left = (this.#byGroup.get(group) ?? 1) - 1;
    if (left === 0) this.#byGroup.delete(group);
    else this.#byGroup.set(group, left);
  }
}
