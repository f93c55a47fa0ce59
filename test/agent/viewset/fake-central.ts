// Central's side of blobs in memory, with the faults that networks and stores have. Keeps what it was asked.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { canonicalJson } from "../../../src/core/journal/canonical-json.ts";
import { AccelError } from "../../../src/core/faults.ts";
import { parseSha256, type Sha256 } from "../../../src/core/ids.ts";
import type { CentralClient } from "../../../src/agent/link/central-client.ts";
import type { Manifest } from "../../../src/wire/manifest.ts";

export function digest(content: string | Uint8Array): Sha256 {
  const sha256 = parseSha256(createHash("sha256").update(content).digest("hex"));
  if (sha256 === undefined) throw new TypeError("not a digest");
  return sha256;
}

const chunkBytes = 64 * 1024;

export class FakeCentral implements Pick<CentralClient, "getBlob" | "blobsMissing" | "putBlob"> {
  readonly blobs = new Map<Sha256, Uint8Array>();
  /** In order: which blob from which byte, and whether it may come compressed. */
  readonly asked: {
    readonly sha256: Sha256;
    readonly from: number;
    readonly isText: boolean;
  }[] = [];
  readonly uploaded: Sha256[] = [];
  /** Breaks off once after so many bytes. */
  readonly cuts = new Map<Sha256, number>();
  /** Sends these instead, under the right name. */
  readonly forged = new Map<Sha256, Uint8Array>();
  doesRanges = true;
  tellsSizes = true;
  /** Transfers wait for it before their first byte. */
  gate: Promise<void> = Promise.resolve();
  running = 0;
  runningMost = 0;

  add(content: string | Uint8Array): Sha256 {
    const bytes = Buffer.from(content);
    const sha256 = digest(bytes);
    this.blobs.set(sha256, bytes);
    return sha256;
  }

  /** A viewset of these files; `change` spoils its manifest. */
  addViewset(
    devlove: string,
    files: Readonly<Record<string, string | Uint8Array>> | null,
    change: (manifest: Manifest) => unknown = (manifest) => manifest,
  ): Sha256 {
    const entries = Object.entries(files ?? {}).map(([path, content]) => ({
      path,
      sha256: this.add(content),
      size: Buffer.byteLength(content),
      mime: "text/html",
    }));
    const manifest: Manifest = {
      devlove: { schema: "devlove/1", sha256: this.add(devlove) },
      files: files === null ? null : entries,
    };
    return this.add(JSON.stringify(change(manifest)));
  }

  async getBlob(sha256: Sha256, rangeFrom: number, signal: AbortSignal, isText = false) {
    signal.throwIfAborted();
    this.asked.push({ sha256, from: rangeFrom, isText });
    const bytes = this.forged.get(sha256) ?? this.blobs.get(sha256);
    if (bytes === undefined) throw new AccelError("NOT_FOUND", `there is no blob ${sha256}`);
    const from = this.doesRanges ? rangeFrom : 0;
    const size = this.tellsSizes ? bytes.length : undefined;
    const chunks = this.#chunks(sha256, bytes, from, signal);
    return { from, size, chunks, cancel: () => undefined };
  }

  async *#chunks(
    sha256: Sha256,
    bytes: Uint8Array,
    from: number,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    this.running++;
    this.runningMost = Math.max(this.running, this.runningMost);
    try {
      await this.gate;
      const cut = this.cuts.get(sha256);
      const end = cut === undefined ? bytes.length : Math.min(bytes.length, from + cut);
      for (let at = from; at < end; at += chunkBytes) {
        signal.throwIfAborted();
        yield bytes.subarray(at, Math.min(end, at + chunkBytes));
      }
      if (this.cuts.delete(sha256)) throw new AccelError("CENTRAL_UNREACHABLE", "cut");
    } finally {
      this.running--;
    }
  }

  async blobsMissing(sha256s: readonly Sha256[]): Promise<readonly Sha256[]> {
    return sha256s.filter((sha256) => !this.blobs.has(sha256));
  }

  async putBlob(
    sha256: Sha256,
    { path, size }: { readonly path: string; readonly size: number },
    signal: AbortSignal,
  ): Promise<void> {
    signal.throwIfAborted();
    this.running++;
    this.runningMost = Math.max(this.running, this.runningMost);
    try {
      const bytes = await readFile(path);
      if (bytes.length !== size || digest(bytes) !== sha256)
        throw new AccelError("CONFLICT", `${path} is not what was promised`);
      if (this.cuts.delete(sha256)) throw new AccelError("CENTRAL_UNREACHABLE", "cut");
      this.blobs.set(sha256, bytes);
      this.uploaded.push(sha256);
    } finally {
      this.running--;
    }
  }

  manifest(sha256: Sha256): Manifest {
    const text = Buffer.from(this.blobs.get(sha256) ?? []).toString("utf8");
    const manifest: Manifest = JSON.parse(text);
    if (canonicalJson(manifest) !== text) throw new Error("the manifest is not canonical");
    return manifest;
  }
}
