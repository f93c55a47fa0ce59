// The walk of a scrub, in a thread of its own. It reads with synchronous calls, which occupy none of the four
// threads of the pool that all others read with.
//
// Damage is only reported. Whoever repairs it looks again, for a file may have been replaced since.

import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { blobPath } from "../../core/blob-path.ts";
import { messageOf, systemCode } from "../../core/faults.ts";
import { parseSha256, type Sha256 } from "../../core/ids.ts";
import type { BodyList, ListedBody } from "../cache/index/body-list.ts";
import type { WalkPosition, WalkMessage } from "./messages.ts";

export type ScrubWalkOptions = {
  readonly blobsDir: string;
  /** The bodies that lie in files. Both calls throw if the index cannot be read. */
  readonly bodies: Pick<BodyList, "after" | "has">;
  readonly from: WalkPosition;
  readonly pace: ReadPace;
  readonly nowMs: () => number;
  readonly tell: (message: WalkMessage) => void;
};

/** The bytes read between two looks at whether to stop: a few milliseconds of a slow disk. */
const pieceBytes = 2 ** 18;
/** Finding and opening a file costs about as much as reading this many bytes. */
const fileBytes = 16_384;
const tellEveryMs = 1_000;

export class Walk {
  readonly #options: ScrubWalkOptions;
  readonly #piece = Buffer.allocUnsafe(pieceBytes);
  #count = 0;
  #bytes = 0;
  #toldMs: number;

  constructor(options: ScrubWalkOptions) {
    this.#options = options;
    this.#toldMs = options.nowMs();
  }

  /** Walks; returns at the end, or soon after it was stopped. */
  run(): void {
    const { from, tell } = this.#options;
    const isBehindBodies = from.stage === "blobs";
    if (!isBehindBodies && !this.#walkBodies(Number(from.stage === "bodies" ? from.after : 0)))
      return;
    if (this.#walkBlobs(isBehindBodies ? from.after : "")) tell({ kind: "done" });
  }

  /** Returns false if it was stopped. */
  #walkBodies(after: number): boolean {
    const { bodies, tell, pace } = this.#options;
    let at = after;
    try {
      for (;;) {
        const page = bodies.after(at);
        for (const body of page.bodies) {
          if (!this.#checkBody(body)) return this.#stopped("bodies", String(at));
          at = body.id;
          this.#tellNowAndThen("bodies", String(at));
        }
        if (page.through === undefined) break;
        at = page.through;
        if (!pace.spend(fileBytes)) return this.#stopped("bodies", String(at));
      }
    } catch (error) {
      // The index thread replaces an index that cannot be read.
      tell({ kind: "skipped", what: "bodies", reason: messageOf(error) });
    }
    this.#tellChecked("bodies", { stage: "blobs", after: "" });
    return true;
  }

  /** Returns false if it was stopped. */
  #checkBody({ id, path, digest, size }: ListedBody): boolean {
    const { bodies, tell } = this.#options;
    const read = this.#digestOf(path);
    if (read === "stopped") return false;
    const isRight = read.kind === "read" && Buffer.compare(read.digest, digest) === 0;
    // If the entry is gone by now, there is nothing to compare the body with.
    if (!isRight && bodies.has(id))
      tell({ kind: "damaged body", id, reason: reasonOf(read, size) });
    return true;
  }

  /** Checks blobs in the order of their digests. Returns false if it was stopped. */
  #walkBlobs(after: string): boolean {
    const { blobsDir } = this.#options;
    const fans = readdirSync(blobsDir).filter((name) => /^[0-9a-f]{2}$/.test(name));
    let at = after;
    for (const fan of fans.sort()) {
      if (fan < after.slice(0, 2)) continue;
      const names = readdirSync(`${blobsDir}/${fan}`).filter((name) => name > after);
      for (const sha256 of names.sort().map(parseSha256)) {
        if (sha256 === undefined) continue;
        if (!this.#checkBlob(sha256)) return this.#stopped("blobs", at);
        at = sha256;
        this.#tellNowAndThen("blobs", at);
      }
    }
    this.#tellChecked("blobs", { stage: "blobs", after: at });
    return true;
  }

  /** Returns false if it was stopped. */
  #checkBlob(sha256: Sha256): boolean {
    const read = this.#digestOf(blobPath(this.#options.blobsDir, sha256));
    if (read === "stopped") return false;
    // A blob that is gone was collected, or is being fetched again.
    if (read.kind === "missing") return true;
    if (read.kind === "read" && read.digest.toString("hex") === sha256) return true;
    this.#options.tell({ kind: "damaged blob", sha256, reason: reasonOf(read, undefined) });
    return true;
  }

  #digestOf(path: string): Read | "stopped" {
    const { pace } = this.#options;
    let bytes = 0;
    this.#count++;
    try {
      const file = openSync(path, "r");
      try {
        const hash = createHash("sha256");
        const { size } = fstatSync(file);
        if (!pace.spend(fileBytes)) return this.#notCounted();
        for (;;) {
          const length = readSync(file, this.#piece, 0, pieceBytes, bytes);
          if (length === 0) break;
          hash.update(this.#piece.subarray(0, length));
          bytes += length;
          if (!pace.spend(length)) return this.#notCounted();
        }
        this.#bytes += bytes;
        return { kind: "read", digest: hash.digest(), size };
      } finally {
        closeSync(file);
      }
    } catch (error) {
      return systemCode(error) === "ENOENT"
        ? { kind: "missing" }
        : { kind: "unreadable", reason: messageOf(error) };
    }
  }

  #notCounted(): "stopped" {
    this.#count--;
    return "stopped";
  }

  #stopped(stage: "bodies" | "blobs", after: string): false {
    this.#tellChecked(stage, { stage, after });
    return false;
  }

  #tellNowAndThen(what: "bodies" | "blobs", after: string): void {
    if (this.#options.nowMs() - this.#toldMs >= tellEveryMs)
      this.#tellChecked(what, { stage: what, after });
  }

  #tellChecked(what: "bodies" | "blobs", position: WalkPosition): void {
    this.#options.tell({
      kind: "checked",
      what,
      count: this.#count,
      bytes: this.#bytes,
      position,
    });
    this.#toldMs = this.#options.nowMs();
    this.#count = 0;
    this.#bytes = 0;
  }
}

type Read =
  | { readonly kind: "read"; readonly digest: Buffer; readonly size: number }
  | { readonly kind: "missing" }
  | { readonly kind: "unreadable"; readonly reason: string };

function reasonOf(read: Read, size: number | undefined): string {
  if (read.kind === "missing") return "it is missing";
  if (read.kind === "unreadable") return `it cannot be read: ${read.reason}`;
  return size === undefined || read.size === size
    ? "its bytes do not match its digest"
    : `it has ${read.size} bytes instead of ${size}`;
}

// Bounds how fast a thread that nobody waits for may read, over any tenth of a second. It rests in between; a
// stop ends each rest at once.

export type ReadPace = {
  /** Rests for as long as these bytes are worth. Returns false if it was stopped. */
  readonly spend: (bytes: number) => boolean;
};

/** The shortest rest. Less is saved up, for a rest must be worth its wake-up. */
const restLeastMs = 20;

/**
 * Creates a pace for a thread that does nothing else: it sleeps. `control` is one Int32; the walk stops when
 * it is not 0.
 */
export function createReadPace(bytesPerS: number, control: Int32Array): ReadPace {
  let owedMs = 0;
  return {
    spend: (bytes) => {
      owedMs += (bytes / bytesPerS) * 1_000;
      if (owedMs >= restLeastMs) {
        Atomics.wait(control, 0, 0, owedMs);
        owedMs = 0;
      }
      return Atomics.load(control, 0) === 0;
    },
  };
}
