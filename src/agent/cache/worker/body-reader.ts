// Bodies as a worker reads them: from memory, from SQLite, from their files. A file that a power loss may have torn is compared with its digest before
// its first use.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { BodyStream } from "./body-stream.ts";
import { hotBodyBytesMax } from "./hot-bodies.ts";
import type { BodyRow } from "./lookups.ts";
import { objectPath } from "../index/object-files.ts";

/** Of files found to be whole, until the index says so too. */
const verifiedMax = 10_000;

export type ReadBody = Uint8Array | BodyStream;

export class BodyReader {
  readonly #directory: string;
  readonly #onVerified: (id: number) => void;
  /** Ids are never reused, so it outlives an index. */
  readonly #verified = new Set<number>();

  constructor(directory: string, onVerified: (id: number) => void) {
    this.#directory = directory;
    this.#onVerified = onVerified;
  }

  /** Undefined: missing, torn, or not what was written. */
  async read(id: number, row: BodyRow, isSuspect: boolean): Promise<ReadBody | undefined> {
    if (row.size === 0) return new Uint8Array();
    if (row.bytes !== null) return row.bytes.length === row.size ? row.bytes : undefined;
    if (row.object === null) return undefined;
    const path = objectPath(this.#directory, row.object);
    const needsProof = isSuspect && row.isVerified === 0 && !this.#verified.has(id);
    if (row.size > hotBodyBytesMax) {
      if (needsProof && !this.#accept(id, row, await digestOfFile(path))) return undefined;
      return BodyStream.open(path, row.size);
    }
    const body = await readFile(path).catch(() => undefined);
    if (body?.length !== row.size) return undefined;
    if (needsProof && !this.#accept(id, row, digestOf(body))) return undefined;
    return body;
  }

  #accept(id: number, { objectDigest }: BodyRow, digest: Uint8Array | undefined): boolean {
    if (digest === undefined || objectDigest === null) return false;
    if (Buffer.compare(digest, objectDigest) !== 0) return false;
    if (this.#verified.size < verifiedMax) this.#verified.add(id);
    this.#onVerified(id);
    return true;
  }
}

function digestOf(body: Uint8Array): Uint8Array {
  return createHash("sha256").update(body).digest();
}

async function digestOfFile(path: string): Promise<Uint8Array | undefined> {
  const hash = createHash("sha256");
  try {
    for await (const chunk of createReadStream(path)) hash.update(chunk);
    return hash.digest();
  } catch {
    return undefined;
  }
}
