// The journal of one deployment site as a central keeps it: valid chains, superseded ranges, and the ways in which a store can be another than before.

import { randomBytes } from "node:crypto";
import type { Json } from "../../src/core/journal/canonical-json.ts";
import { bodyDigest, chainStart, nextChain } from "../../src/core/journal/journal-chain.ts";
import type { JournalEntry, JournalItem } from "../../src/wire/journal.ts";

export class FakeJournal {
  epoch = randomBytes(8).toString("hex");
  head = { seq: 0, chain: chainStart };
  #items: JournalItem[] = [];

  append(kind: string, body: Record<string, unknown>): JournalEntry {
    const seq = this.head.seq + 1;
    const at = new Date(seq * 1000).toISOString();
    const digest = bodyDigest(body as Json);
    const chain = nextChain(this.head.chain, { seq, kind, at, bodyDigest: digest });
    const entry: JournalEntry = { seq, kind, at, body, chain };
    this.head = { seq, chain };
    this.#items.push(entry);
    return entry;
  }

  /** The entries from `fromSeq` up to the head become one superseded range. */
  supersede(fromSeq: number): void {
    const { seq: toSeq, chain } = this.head;
    this.#items = this.#items.filter((item) => endOf(item) < fromSeq);
    this.#items.push({
      from_seq: fromSeq,
      to_seq: toSeq,
      superseded: true,
      chain: chain,
    });
  }

  /** As after a restore: another epoch, another journal. */
  renew(): void {
    this.epoch = randomBytes(8).toString("hex");
    this.#items = [];
    this.head = { seq: 0, chain: chainStart };
  }

  /** As a store that was copied back: same epoch, shorter. */
  cutFrom(fromSeq: number): void {
    this.#items = this.#items.filter((item) => endOf(item) < fromSeq);
    const last = this.#items.at(-1);
    this.head =
      last === undefined ? { seq: 0, chain: chainStart } : { seq: endOf(last), chain: last.chain };
  }

  after(seq: number): readonly JournalItem[] {
    return this.#items.filter((item) => endOf(item) > seq).slice(0, 500);
  }

  fits(epoch: string | null, seq: number, chain: string): boolean {
    if (epoch !== this.epoch || seq > this.head.seq) return false;
    if (seq === 0) return chain === chainStart;
    return this.#items.find((item) => endOf(item) === seq)?.chain === chain;
  }
}

function endOf(item: JournalItem): number {
  return "superseded" in item ? item.to_seq : item.seq;
}
