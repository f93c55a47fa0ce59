// Counts of unreviewed bots that central has not acknowledged, in agent.db: they outlive the process that made
// them. One document, written whole:
//
//   instance   the instance that counted. In a copied state directory it is another one, which tells central itself
//   sent       the batch that may be at central: it is sent again under its number, which central adds once
//   counts     what is in no batch yet and was never sent
//
// On a disk that has little room nothing is kept, for what is left of it is the journal's: the document is
// removed, and counts live in memory alone.

import type { CountedBatch } from "../../../wire/channel.ts";
import type { Documents } from "../../link/agent-db.ts";
import type { UnreviewedCount } from "./unreviewed-counts.ts";

export type UnreviewedBatch = {
  readonly id: CountedBatch;
  readonly counts: readonly UnreviewedCount[];
};

export type Kept = {
  readonly sent: UnreviewedBatch | undefined;
  readonly counts: readonly UnreviewedCount[];
};

export const keptCountsKey = "unreviewed";
/** Far more than a document of the largest size and what follows it in the WAL, bytes. */
export const freeLeast = 64 * 2 ** 20;

const nothing: Kept = { sent: undefined, counts: [] };

type Written = Omit<Kept, "sent"> & {
  readonly instance: string;
  readonly sent: UnreviewedBatch | null;
};

export class KeptCounts {
  readonly #documents: Documents;
  readonly #instance: string;
  readonly #free: () => number;
  #onDisk: Kept = nothing;

  /** `free` tells how many bytes the disk has left. */
  constructor(documents: Documents, instance: string, free: () => number) {
    this.#documents = documents;
    this.#instance = instance;
    this.#free = free;
  }

  /** Whether a start would find counts that are in no batch. */
  get hasCounts(): boolean {
    return this.#onDisk.counts.length > 0;
  }

  /** Returns what was written last. */
  read(): Kept {
    const written = this.#documents.get(keptCountsKey) as Written | undefined; // Only `write` writes it.
    if (written?.instance !== this.#instance) return nothing;
    this.#onDisk = { sent: written.sent ?? undefined, counts: written.counts };
    return this.#onDisk;
  }

  /**
   * Writes what is to be found by the next start; it is durable on return. Returns false where the disk has no
   * room for it: then the next start finds nothing. Throws what the database throws, and nothing has changed.
   */
  write(kept: Kept): boolean {
    const isEmpty = kept.sent === undefined && kept.counts.length === 0;
    const hasRoom = isEmpty || this.#free() >= freeLeast;
    const next = hasRoom ? kept : nothing;
    const { sent = null, counts } = next;
    const written = sent === null && counts.length === 0 ? null : { sent, counts };
    if (written !== null)
      this.#documents.put({ [keptCountsKey]: { instance: this.#instance, ...written } });
    else if (this.#onDisk !== nothing) this.#documents.put({ [keptCountsKey]: null });
    this.#onDisk = written === null ? nothing : next;
    return hasRoom;
  }
}
