// Partial files belong to transfers that are under way or broke off. What broke off is continued by range as
// long as somebody may want it:
//
//   a transfer writes to it                                           it stays
//   this process asked for its blob lately or under an open hold      it stays: retries come within a minute
//   it lay here at the start, and nobody continued it since           it stays for a day: whoever wants it
//                                                                     may not have heard from central yet
//   anything else                                                     it goes at the next collection
//
// All of them take room. Where room is needed, those that no version needs go first: all that is lost is the
// beginning of a transfer.

import { unlinkSync } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { blobKey } from "../../core/blob-list.ts";
import { parseSha256, type Sha256 } from "../../core/ids.ts";
import type { BlobUses } from "./blob-uses.ts";
import type { SharedTransfers } from "./shared-transfers.ts";

type Part = { readonly sha256: Sha256; readonly bytes: number };

export type SweptParts = {
  readonly removed: number;
  readonly removedBytes: number;
  /** Partial files that were asked for too lately to go. */
  readonly young: number;
};

const ending = ".part";
/** The time that partial files found at the start are kept, from the start. */
const foundForMs = 86_400_000;
/** The longest time since its last write that a partial file found at the start may have. */
const ageMaxMs = 7 * 86_400_000;

export class PartialFiles {
  readonly #dir: string;
  readonly #transfers: SharedTransfers;
  readonly #uses: BlobUses;
  /** The partial files of earlier starts that no transfer of this start has continued. */
  readonly #found: Set<Sha256>;
  readonly #nowMs: () => number;
  readonly #foundUntilMs: number;

  constructor(
    dir: string,
    transfers: SharedTransfers,
    uses: BlobUses,
    nowMs: () => number,
    found: Iterable<Sha256>,
  ) {
    this.#dir = dir;
    this.#transfers = transfers;
    this.#uses = uses;
    this.#nowMs = nowMs;
    this.#found = new Set(found);
    this.#foundUntilMs = nowMs() + foundForMs;
  }

  /** Returns the path to which a transfer that begins now writes. */
  begin(sha256: Sha256): string {
    this.#found.delete(sha256);
    return this.#pathOf(sha256);
  }

  /** Returns the bytes of the partial files that no transfer writes to. */
  async idleBytes(): Promise<number> {
    return (await this.#idle()).reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Removes the partial files that no transfer writes to, but keeps those of the blobs that are needed. */
  async removeBut(isNeeded: (key: number) => boolean): Promise<void> {
    for (const { sha256 } of await this.#idle())
      if (!isNeeded(blobKey(sha256))) this.#remove(sha256);
  }

  /** Removes the partial files that nobody wants any more. */
  async sweep(): Promise<SweptParts> {
    this.#uses.forget();
    const swept = { removed: 0, removedBytes: 0, young: 0 };
    for (const { sha256, bytes } of await this.#idle()) {
      if (this.#uses.isUsed(blobKey(sha256))) swept.young++;
      else if (this.#found.has(sha256) && this.#nowMs() < this.#foundUntilMs) continue;
      else if (this.#remove(sha256)) {
        swept.removed++;
        swept.removedBytes += bytes;
      }
    }
    return swept;
  }

  #pathOf(sha256: Sha256): string {
    return `${this.#dir}/${sha256}${ending}`;
  }

  async #idle(): Promise<readonly Part[]> {
    const parts: Part[] = [];
    for (const name of await readdir(this.#dir)) {
      const sha256 = blobOf(name);
      if (sha256 === undefined || this.#transfers.isRunning(sha256)) continue;
      const stats = await stat(`${this.#dir}/${name}`).catch(() => undefined);
      if (stats !== undefined) parts.push({ sha256, bytes: stats.size });
    }
    return parts;
  }

  /**
   * Removes a partial file, synchronously, so that no transfer can begin between the question and the
   * removal.
   */
  #remove(sha256: Sha256): boolean {
    if (this.#transfers.isRunning(sha256)) return false;
    try {
      unlinkSync(this.#pathOf(sha256));
      this.#found.delete(sha256);
      return true;
    } catch {
      return false; // It has become a blob meanwhile.
    }
  }
}

/**
 * Removes what earlier starts left, except for partial files that can be continued; returns the blobs of
 * these.
 */
export async function sweepIncoming(
  dir: string,
  isHere: (sha256: Sha256) => boolean,
): Promise<readonly Sha256[]> {
  const found: Sha256[] = [];
  for (const name of await readdir(dir)) {
    const path = `${dir}/${name}`;
    const sha256 = blobOf(name);
    if (sha256 !== undefined && !isHere(sha256) && (await isContinuable(path))) found.push(sha256);
    else await rm(path, { recursive: true, force: true });
  }
  return found;
}

async function isContinuable(path: string): Promise<boolean> {
  const stats = await stat(path);
  return stats.isFile() && Date.now() - stats.mtimeMs < ageMaxMs;
}

function blobOf(name: string): Sha256 | undefined {
  return name.endsWith(ending) ? parseSha256(name.slice(0, -ending.length)) : undefined;
}
