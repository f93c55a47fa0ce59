// What the agents of a deployment proved about one journal entry: their receipts, judged.
//
// Receipts belong to instances. An instance counts when it was seen lately; where none was, the one seen last. All that count must have
// receipted. A receipt of a snapshot covers every entry up to its position.

import { parseDetail, type Detail } from "./receipt-detail.ts";
import type { Queries } from "./database.ts";

/** Three periods of the poll (60 s): an agent that is up was seen within. */
export const seenLatelyMs = 180_000;

export type InstanceSeen = { readonly instanceId: string; readonly lastSeen: string };
export type ReceiptSeen = {
  readonly instanceId: string;
  readonly seq: number;
  readonly phase: "applied" | "gone" | "failed" | "refused";
  readonly detail: Detail;
  readonly tookMs: number;
};
export type Proof = {
  readonly state: "applied" | "pending" | "failed";
  readonly error: string | undefined;
  readonly lastSeen: string | undefined;
  /** Of the instances that count: own receipts of the entry, or that of the snapshot in their place. */
  readonly receipts: readonly ReceiptSeen[];
};

/** Pure. `receipts` are those of the entry and those of snapshots at or behind it. */
export function proofOf(
  seq: number,
  instances: readonly InstanceSeen[],
  receipts: readonly ReceiptSeen[],
  nowMs: number,
): Proof {
  const byLastSeen = instances.toSorted((a, b) => (a.lastSeen < b.lastSeen ? 1 : -1));
  const lately = byLastSeen.filter(({ lastSeen }) => nowMs - Date.parse(lastSeen) <= seenLatelyMs);
  const counting = lately.length > 0 ? lately : byLastSeen.slice(0, 1);
  const relied = counting.map(({ instanceId }) => {
    const own = receipts.filter((r) => r.instanceId === instanceId && r.seq === seq);
    if (own.length > 0) return own;
    const snapshot = receipts.find((r) => r.instanceId === instanceId && r.seq > seq);
    return snapshot === undefined ? [] : [snapshot];
  });
  const failed = relied
    .flat()
    .find(({ phase, seq: at }) => at === seq && (phase === "failed" || phase === "refused"));
  const proven = relied.every((list) => list.some(({ phase }) => phase === "applied"));
  const state =
    failed !== undefined ? "failed" : proven && counting.length > 0 ? "applied" : "pending";
  return {
    state,
    error: failed === undefined ? undefined : reasonOf(failed),
    lastSeen: byLastSeen[0]?.lastSeen,
    receipts: relied.flat(),
  };
}

function reasonOf({ detail, phase }: ReceiptSeen): string {
  const reason = detail["reason"];
  return typeof reason === "string" ? reason : phase;
}

export async function readProof(
  db: Queries,
  deploymentSiteId: number,
  seq: number,
  nowMs: number,
): Promise<Proof> {
  const instances = await db
    .selectFrom("instances")
    .select(["instance_id as instanceId", "last_seen as lastSeen"])
    .where("deployment_site_id", "=", deploymentSiteId)
    .execute();
  const rows = await db
    .selectFrom("receipts")
    .select(["instance_id as instanceId", "seq", "phase", "detail", "took_ms as tookMs"])
    .where("deployment_site_id", "=", deploymentSiteId)
    .where((where) =>
      where.or([
        where("seq", "=", seq),
        where.and([
          where("seq", ">", seq),
          where("phase", "=", "applied"),
          where("detail", "like", '%"snapshot":true%'),
        ]),
      ]),
    )
    .execute();
  const receipts = rows.map((row) => ({ ...row, detail: parseDetail(row.detail) }));
  return proofOf(
    seq,
    instances,
    receipts.filter((receipt) => receipt.seq === seq || receipt.detail["snapshot"] === true),
    nowMs,
  );
}
