// Bounds how much of agents' batches is in memory at once, counted from before a body is read until it is
// answered, and how many batches of one deployment site.

export type RoomRefusal = { readonly kind: "full" | "crowded" };
export type RoomTaken = Disposable & { readonly kind: "taken" };

/** The most bytes of all batches together: 16 of the largest, or hundreds of usual ones. */
const bytesMax = 64 * 2 ** 20;
/** The most batches of one site: two live instances with four lanes each under way. */
const ofOneSiteMax = 8;

export class LogRoom {
  readonly #sites = new Map<number, number>();
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** Takes room. `full` means too many bytes of all sites, `crowded` too many batches of this one. */
  take(siteId: number, bytes: number): RoomTaken | RoomRefusal {
    const ofSite = this.#sites.get(siteId) ?? 0;
    if (ofSite >= ofOneSiteMax) return { kind: "crowded" };
    if (this.#bytes + bytes > bytesMax) return { kind: "full" };
    this.#bytes += bytes;
    this.#sites.set(siteId, ofSite + 1);
    return {
      kind: "taken",
      [Symbol.dispose]: () => {
        this.#bytes -= bytes;
        const left = (this.#sites.get(siteId) ?? 1) - 1;
        if (left === 0) this.#sites.delete(siteId);
        else this.#sites.set(siteId, left);
      },
    };
  }
}
