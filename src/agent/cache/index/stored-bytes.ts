// How much the index holds, all in all and by domain: counted, not asked. Exact after open, and kept with every row that was committed.

export type DomainSize = {
  readonly domain: string;
  readonly count: number;
  readonly bytes: number;
};

type Size = { count: number; bytes: number };

export class StoredBytes {
  readonly #domains = new Map<string, Size>();
  #count = 0;
  #bytes = 0;
  /** Changes of the transaction in progress, by domain. */
  #pending = new Map<string, Size>();

  constructor(sizes: readonly DomainSize[]) {
    for (const { domain, count, bytes } of sizes) this.#add(domain, { count, bytes });
  }

  get count(): number {
    return this.#count;
  }
  get bytes(): number {
    return this.#bytes;
  }
  /** Domains that hold something. */
  get domains(): number {
    return this.#domains.size;
  }

  *byDomain(): Iterable<DomainSize> {
    for (const [domain, size] of this.#domains) yield { domain, ...size };
  }

  change(domain: string, count: number, bytes: number): void {
    const pending = this.#pending.get(domain);
    if (pending === undefined) this.#pending.set(domain, { count, bytes });
    else {
      pending.count += count;
      pending.bytes += bytes;
    }
  }

  /** Takes over or forgets what the last transaction changed; by how many bytes it changed which domain. */
  settle(committed: boolean): readonly (readonly [domain: string, bytes: number])[] {
    if (this.#pending.size === 0) return [];
    const pending = committed ? [...this.#pending] : [];
    for (const [domain, size] of pending) this.#add(domain, size);
    this.#pending = new Map();
    return pending.map(([domain, { bytes }]) => [domain, bytes]);
  }

  #add(domain: string, { count, bytes }: Size): void {
    this.#count += count;
    this.#bytes += bytes;
    const before = this.#domains.get(domain) ?? { count: 0, bytes: 0 };
    const size = { count: before.count + count, bytes: before.bytes + bytes };
    if (size.count === 0) this.#domains.delete(domain);
    else this.#domains.set(domain, size);
  }
}
