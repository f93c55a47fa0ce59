// Whether two processes use one instance id at once. Several instances of a site are a normal fleet; one id on two live channels is not: they replace each other, and
// what one proves is taken for the other's.
//
// Each start of an agent has a boot id. One that was replaced by another boot is over, so a boot that says hello again after it was replaced runs beside the other.
// An agent that is restarted, or whose connection broke, never shows that.

/** Boots of one instance that were replaced; two that take turns are found among the last two. */
const replacedMax = 8;
/** Agents come back within a minute of being replaced; so long without it, one of them is gone. */
const settledAfterMs = 180_000;

type Known = { boot: string; replaced: readonly string[] };

/** The duplicates among this process's channels. Instances are forgotten with their last channel. */
export class Duplicates {
  readonly #known = new Map<string, Known>();
  /** When they last replaced each other. */
  readonly #found = new Map<string, number>();

  /** A channel of the instance said hello. True: a duplicate that was not known is found. */
  greeted(instance: string, boot: string, nowMs: number): boolean {
    const known = this.#known.get(instance) ?? { boot, replaced: [] };
    this.#known.set(instance, known);
    if (known.boot === boot) return false;
    const isBack = known.replaced.includes(boot);
    const before = known.replaced.filter((one) => one !== boot);
    known.replaced = [known.boot, ...before].slice(0, replacedMax);
    known.boot = boot;
    if (!isBack) return false;
    const isNew = !this.#found.has(instance);
    this.#found.set(instance, nowMs);
    return isNew;
  }

  /** Its last channel is closed. */
  gone(instance: string): void {
    this.#known.delete(instance);
    this.#found.delete(instance);
  }

  has(instance: string): boolean {
    return this.#found.has(instance);
  }

  /** How many there are. Those that have not replaced each other for a while are none any more. */
  count(nowMs: number): number {
    for (const [instance, foundMs] of this.#found)
      if (nowMs - foundMs > settledAfterMs) this.#found.delete(instance);
    return this.#found.size;
  }
}
