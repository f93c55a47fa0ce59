// The files of a viewset: a path is looked up in the manifest's table and its bytes are a blob. The path never becomes a file name.

import { open, type FileHandle } from "node:fs/promises";
import { blobPath } from "../../core/blob-path.ts";
import type { ByteRange } from "../../core/conditional.ts";
import { ManifestTable, type ManifestFile } from "../../core/manifest-table.ts";
import type { Body } from "./answer.ts";
import {
  contentTypeOf,
  readExactly,
  readInChunks,
  wholeBytesMax,
  wholeRange,
  type SiteFile,
  type SiteFiles,
} from "./site-files.ts";

export class ManifestFiles implements SiteFiles {
  readonly #table: ManifestTable;
  readonly #prefix: string;
  readonly #blobsDir: string;

  constructor(table: SharedArrayBuffer, prefix: string, blobsDir: string) {
    this.#table = new ManifestTable(table);
    this.#prefix = prefix;
    this.#blobsDir = blobsDir;
  }

  async find(path: string): Promise<SiteFile | undefined> {
    const file = this.#table.find(this.#prefix + path);
    return file === undefined ? undefined : new BlobFile(path, file, this.#blobsDir);
  }
}

/** Opened only when its bytes are wanted: HEAD and 304 touch no disk. */
class BlobFile implements SiteFile {
  readonly path: string;
  readonly size: number;
  readonly contentType: string;
  readonly digest: string;
  readonly validators: SiteFile["validators"];
  readonly #blob: string;
  #handle: FileHandle | undefined;

  constructor(path: string, file: ManifestFile, blobsDir: string) {
    this.path = path;
    this.size = file.size;
    this.contentType = contentTypeOf(file.mime);
    this.digest = file.sha256;
    this.validators = { etag: `"${file.sha256}"`, modifiedMs: undefined };
    this.#blob = blobPath(blobsDir, file.sha256);
  }

  async body(range: ByteRange = wholeRange(this.size)): Promise<Body> {
    if (this.size === 0) return new Uint8Array(0);
    const handle = await open(this.#blob, "r");
    this.#handle = handle;
    // Blobs were verified when they were stored and never change; one of another size is damaged.
    if ((await handle.stat()).size !== this.size) throw new Error(`blob ${this.digest} is damaged`);
    return range.last - range.first < wholeBytesMax
      ? readExactly(handle, range)
      : readInChunks(handle, range, () => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle?.close();
  }
}
