// Bodies that were asked for lately, in memory, one cache per worker. Keyed by entry id, which is never reused.

import { HotMemory } from "./hot-memory.ts";

/** Larger bodies are streamed from disk: the kernel keeps those warm. */
export const hotBodyBytesMax = 262_144;
/** Of the map's slot, the array and its buffer, beside the bytes. */
const overheadBytes = 256;

export class HotBodies {
  readonly #bodies: HotMemory<number, Uint8Array>;

  constructor(bytesMax: number) {
    this.#bodies = new HotMemory(bytesMax);
  }

  get(id: number): Uint8Array | undefined {
    return this.#bodies.get(id);
  }

  put(id: number, body: Uint8Array): void {
    if (body.length > hotBodyBytesMax) return;
    this.#bodies.put(id, body, body.length + overheadBytes);
  }

  drop(id: number): void {
    this.#bodies.drop(id);
  }

  clear(): void {
    this.#bodies.clear();
  }
}
