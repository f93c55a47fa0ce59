// Finds two processes that use one instance id at once. Several instances of a site are a normal fleet. One
// id on two live channels is not: they replace each other, and what one proves is taken for the other's.
//
// Each start of an agent has a boot id. A boot that was replaced by another is normally over, so one that
// says hello again after it was replaced runs beside the other. An agent that is restarted, or whose
// connection broke, never does that.

/** The most replaced boots remembered of one instance; two that take turns are found among the last two. */
const replacedMax = 8;
/** The time after which a duplicate counts as gone. Agents come back within a minute of being replaced. */
const settledAfterMs = 180_000;

type Known = { boot: string; replaced: readonly string[] };

/** The duplicates among this process's channels. Instances are forgotten with their last channel. */
export class Duplicates {
  readonly #known = new Map<string, Known>();
  /** When the boots of an instance last replaced each other. */
  readonly #found = new Map<string, number>();

  /**
   * Notes that a channel of the instance said hello. Returns true if this finds a duplicate that was not
   * known.
   */
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

  /** Forgets an instance whose last channel is closed. */
  gone(instance: string): void {
    this.#known.delete(instance);
    this.#found.delete(instance);
  }

  has(instance: string): boolean {
    return this.#found.has(instance);
  }

  /** Counts the duplicates. Those that have not replaced each other for a while no longer count. */
  count(nowMs: number): number {
    for (const [instance, foundMs] of this.#found)
      if (nowMs - foundMs > settledAfterMs) this.#found.delete(instance);
    return this.#found.size;
  }
}
