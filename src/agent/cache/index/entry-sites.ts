// Whose each entry is, in memory: a number for its site by id. Clears ask for hundreds of thousands of entries at once; look-ups in index.db took half a second.
//
// A thousand ids stand in 4 KB, which go when the last of those entries is gone.

import { inScope, type EntryKey, type Scope } from "../entry.ts";

export type Site = Pick<EntryKey, "domain" | "host">;

const chunkIds = 1_024;

type Chunk = { readonly sites: Uint32Array; live: number };

export class EntrySites {
  readonly #sites: Site[] = [];
  readonly #numbers = new Map<string, number>();
  /** The chunks by id / chunkIds. */
  readonly #chunks = new Map<number, Chunk>();

  /** Notes whose these ids are: each once, and ascending for speed. */
  set(ids: Iterable<number>, site: Site): void {
    const siteNo = this.#numberOf(site);
    let chunk: Chunk | undefined;
    let chunkNo = -1;
    for (const id of ids) {
      const no = Math.floor(id / chunkIds);
      if (chunk === undefined || no !== chunkNo) {
        chunk = this.#chunkOf(no);
        chunkNo = no;
      }
      chunk.sites[id % chunkIds] = siteNo;
      chunk.live++;
    }
  }

  unset(id: number): void {
    const no = Math.floor(id / chunkIds);
    const chunk = this.#chunks.get(no);
    if (chunk === undefined || chunk.sites[id % chunkIds] === 0) return;
    chunk.sites[id % chunkIds] = 0;
    chunk.live--;
    if (chunk.live === 0) this.#chunks.delete(no);
  }

  /** Returns those of the ids that are in scope, in their order. */
  among(ids: Float64Array, scope: Scope): Float64Array {
    const isIn = Uint8Array.from([{ domain: "", host: "" }, ...this.#sites], (site, no) =>
      no > 0 && inScope(scope, site) ? 1 : 0,
    );
    const found = new Float64Array(ids.length);
    let count = 0;
    let chunk: Chunk | undefined;
    let chunkNo = -1;
    for (const id of ids) {
      const no = Math.floor(id / chunkIds);
      if (no !== chunkNo) {
        chunk = this.#chunks.get(no);
        chunkNo = no;
      }
      if (isIn[chunk?.sites[id % chunkIds] ?? 0] === 1) found[count++] = id;
    }
    return found.slice(0, count);
  }

  #chunkOf(no: number): Chunk {
    let chunk = this.#chunks.get(no);
    if (chunk === undefined) {
      chunk = { sites: new Uint32Array(chunkIds), live: 0 };
      this.#chunks.set(no, chunk);
    }
    return chunk;
  }

  /**
   * Returns the number of a site, from 1 on; 0 is nobody's. There are as many as sites have been served: none
   * is forgotten before the index is opened again.
   */
  #numberOf({ domain, host }: Site): number {
    const name = `${domain}\n${host}`;
    let no = this.#numbers.get(name);
    if (no === undefined) {
      no = this.#sites.push({ domain, host });
      this.#numbers.set(name, no);
    }
    return no;
  }
}
