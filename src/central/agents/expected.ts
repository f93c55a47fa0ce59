// Instances that lost their channel through no doing of theirs, and are expected back within moments: their central stops or was started again, or the store is away, so that
// nobody lets them in.
// Whoever waits for what agents prove waits for them as for those that are connected.

/** An agent comes back after 1 to 5 s where its central drains, and as long again where it finds nobody at first. */
const comesBackMs = 10_000;

type Left = { readonly atMs: number; readonly isCertain: boolean };

export class Expected {
  readonly #bySite = new Map<number, Map<string, Left>>();
  readonly #monotonicMs: () => number;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** The last channel of an instance is gone. Without `isCertain` the instance may have left by itself: it counts once it turns out that the store was away (`hold`). */
  left(siteId: number, instanceId: string, isCertain: boolean): void {
    const ofSite = this.#bySite.get(siteId) ?? new Map<string, Left>();
    this.#bySite.set(siteId, ofSite.set(instanceId, { atMs: this.#monotonicMs(), isCertain }));
  }

  back(siteId: number, instanceId: string): void {
    const ofSite = this.#bySite.get(siteId);
    ofSite?.delete(instanceId);
    if (ofSite?.size === 0) this.#bySite.delete(siteId);
  }

  /** Returns whether an instance of the site, or that one, is expected back. */
  has(siteId: number, instanceId?: string): boolean {
    const ofSite = this.#bySite.get(siteId);
    if (ofSite === undefined) return false;
    const left = instanceId === undefined ? [...ofSite.values()] : [ofSite.get(instanceId)];
    return left.some((one) => one?.isCertain === true && this.#isLately(one));
  }

  /** The store is away: who left lately is expected, and has its time from the return on. */
  hold(): void {
    const atMs = this.#monotonicMs();
    for (const ofSite of this.#bySite.values())
      for (const [instanceId, left] of ofSite)
        if (this.#isLately(left)) ofSite.set(instanceId, { atMs, isCertain: true });
  }

  /** Forgets those whose time is over. Returns whether there were any: nobody waits for them any more. */
  forget(): boolean {
    const over = [...this.#bySite].flatMap(([siteId, ofSite]) =>
      [...ofSite].flatMap(([instanceId, left]) =>
        this.#isLately(left) ? [] : [{ siteId, instanceId }],
      ),
    );
    for (const { siteId, instanceId } of over) this.back(siteId, instanceId);
    return over.length > 0;
  }

  #isLately({ atMs }: Left): boolean {
    return this.#monotonicMs() - atMs <= comesBackMs;
  }
}
