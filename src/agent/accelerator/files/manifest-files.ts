// The files of a viewset: a path is looked up in the manifest's table and its bytes are a blob. The path never becomes a file name.

import type { ByteRange } from "../../../core/http/conditional.ts";
import { ManifestTable, type ManifestFile } from "../../../core/serving/manifest-table.ts";
import { messageOf } from "../../../core/faults.ts";
import type { AnswerBody, AnswerPieces } from "../doors/answer.ts";
import type { BadBlob } from "../pool/worker-messages.ts";
import type { LentChunks } from "./chunks.ts";
import { isSmall, type BlobBodies, type BorrowedBlob } from "./bodies.ts";
import {
  AbsentPaths,
  contentTypeOf,
  partOf,
  readExactly,
  readInChunks,
  wholeBytesMax,
  wholeRange,
  type SiteFile,
  type SiteFiles,
} from "./site-files.ts";

export type BlobPlace = {
  readonly bodies: BlobBodies;
  /** Told of each blob that is missing, unreadable, of another size or known to have other bytes. Must not throw. */
  readonly onBadBlob: (blob: BadBlob) => void;
};

export class ManifestFiles implements SiteFiles {
  readonly absent = new AbsentPaths();
  readonly #table: ManifestTable;
  readonly #prefix: string;
  readonly #source: BlobPlace;

  constructor(table: SharedArrayBuffer, prefix: string, source: BlobPlace) {
    this.#table = new ManifestTable(table);
    this.#prefix = prefix;
    this.#source = source;
  }

  async find(path: string): Promise<SiteFile | undefined> {
    return this.findNow(path);
  }

  findNow(path: string): SiteFile | undefined {
    const file = this.#table.find(this.#prefix + path);
    return file === undefined ? undefined : new BlobFile(path, file, this.#source);
  }
}

/** Touches the disk only when its bytes are wanted: HEAD and 304 do not. */
class BlobFile implements SiteFile {
  readonly path: string;
  readonly size: number;
  readonly contentType: string;
  readonly digest: string;
  readonly validators: SiteFile["validators"];
  readonly #file: ManifestFile;
  readonly #source: BlobPlace;
  #borrowed: BorrowedBlob | undefined;
  #lent: LentChunks | undefined;

  constructor(path: string, file: ManifestFile, source: BlobPlace) {
    this.path = path;
    this.size = file.size;
    this.contentType = contentTypeOf(file.mime);
    this.digest = file.sha256;
    this.validators = { etag: `"${file.sha256}"`, modifiedMs: undefined };
    this.#file = file;
    this.#source = source;
  }

  held(): Uint8Array | undefined {
    return this.size === 0 ? nothing : this.#source.bodies.held(this.#file.sha256);
  }

  async body(range: ByteRange = wholeRange(this.size), from?: "disk"): Promise<AnswerBody> {
    if (this.size === 0) return nothing;
    const { bodies } = this.#source;
    const held = from === "disk" ? undefined : this.held();
    if (held !== undefined) return partOf(held, range);
    try {
      const isWhole = from === "disk" ? isSmall(this.#file) : bodies.isToKeep(this.#file);
      if (isWhole) return partOf(await bodies.read(this.#file), range);
      return await this.#readLarge(range);
    } catch (error) {
      this.#tell(error);
      throw error;
    }
  }

  async #readLarge(range: ByteRange): Promise<AnswerBody> {
    this.#borrowed ??= await this.#source.bodies.borrow(this.#file);
    const { handle } = this.#borrowed;
    if (range.last - range.first < wholeBytesMax) return await readExactly(handle, range);
    const { chunks } = this.#source.bodies;
    const lent = (this.#lent ??= chunks.lend());
    const pieces = this.#watched(readInChunks(handle, range, { reads: chunks.reads, lent }));
    return {
      [Symbol.asyncIterator]: () => pieces,
      giveBack: () => lent.giveBack(),
    } satisfies AnswerPieces;
  }

  async *#watched(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* chunks;
    } catch (error) {
      this.#tell(error);
      throw error;
    }
  }

  #tell(error: unknown): void {
    // Of this worker and moment: no descriptor is left, or the file was closed under a visitor who left.
    if (codesOfOurs.has(codeOfError(error))) return;
    const { sha256, size } = this.#file;
    this.#source.onBadBlob({ sha256, size, reason: messageOf(error) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#lent?.end();
    await this.#borrowed?.[Symbol.asyncDispose]();
  }
}

const nothing = new Uint8Array(0);

const codesOfOurs: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE", "ENOMEM", "EBADF"]);

function codeOfError(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
