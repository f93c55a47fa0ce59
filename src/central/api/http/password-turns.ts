// Verifies passwords one after the other, because each takes 20 MiB and some 30 ms of a core. Waiting costs
// little, so a flood of guesses from many addresses delays others instead of turning them away. Only a few of
// one address may wait. Those who were right before go first.

import { addressGroups } from "../../../core/addresses/address-group.ts";

/** The most attempts of an IPv4 address or a /48 that wait; those who were right before do not count. */
const waitingPerAddress = 8;
/** The most attempts that wait in all, which take half a minute. */
const waitingMax = 1_000;

export class PasswordTurns {
  readonly #known: (() => void)[] = [];
  readonly #others: (() => void)[] = [];
  readonly #byGroup = new Map<string, number>();
  #isTaken = false;

  /** Runs `verify` in its turn. Returns undefined without running it if too many wait. */
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
    await promise; // The turn is handed over, still taken.
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
