// What to do with items of the journal, from whichever path they came: pure. Channel and poll may bring the same item twice; each is taken once, in order, if its digest continues ours.

import type { Json } from "../../core/journal/canonical-json.ts";
import { bodyDigest, nextChain } from "../../core/journal/journal-chain.ts";
import type { JournalEntry, JournalItem } from "../../wire/journal.ts";

/** The last item that was taken and the chain digest there. */
export type Mark = { readonly seq: number; readonly chain: string };

export type IntakeStep =
  | {
      readonly kind: "skip";
      readonly fromSeq: number;
      readonly toSeq: number;
      readonly chain: string;
    }
  | { readonly kind: "entry"; readonly entry: JournalEntry };

export type IntakePlan = {
  readonly steps: readonly IntakeStep[];
  /** Why it stopped: `gap`: items between ours and the next are missing; `mismatch`: another history; `full`: no room for more now. */
  readonly verdict: "all" | "gap" | "mismatch" | "full";
};

/** `room`: how many entries may be taken. */
export function planIntake(
  received: Mark,
  items: readonly JournalItem[],
  room: number,
): IntakePlan {
  const steps: IntakeStep[] = [];
  let mark = received;
  let left = room;
  const end = (verdict: IntakePlan["verdict"]): IntakePlan => ({ steps, verdict });
  for (const item of items) {
    const [fromSeq, toSeq] =
      "superseded" in item ? [item.from_seq, item.to_seq] : [item.seq, item.seq];
    if (toSeq <= mark.seq) continue;
    if (fromSeq > mark.seq + 1) return end("gap");
    if ("superseded" in item) {
      // Its digest cannot be computed without the bodies; the next entry's is computed from it.
      steps.push({ kind: "skip", fromSeq: mark.seq + 1, toSeq, chain: item.chain });
    } else {
      const { seq, kind, at, body } = item;
      // It was parsed from JSON.
      const digest = bodyDigest(body as Json);
      if (nextChain(mark.chain, { seq, kind, at, bodyDigest: digest }) !== item.chain)
        return end("mismatch");
      if (left <= 0) return end("full");
      left -= 1;
      steps.push({ kind: "entry", entry: item });
    }
    mark = { seq: toSeq, chain: item.chain };
  }
  return end("all");
}
