// What the agents of a deployment proved about one journal entry: their receipts, judged.
//
// Receipts belong to instances. An instance counts when it was seen lately; where none was, the one seen last. All that count must have
// receipted. A receipt of a snapshot covers every entry up to its position.

import { countOf, parseDetail, type ReceiptDetail } from "./receipt-detail.ts";
import { sql } from "kysely";
import type { Queries } from "../engine/database.ts";
import { listed, rowsAtOnce } from "../engine/listed.ts";
import { parts } from "../engine/parts.ts";

/** Three periods of the poll (60 s): an agent that is up was seen within. */
export const seenLatelyMs = 180_000;
/** The time for which an instance that is silent is listed. */
export const listedForMs = 86_400_000;

export type ProofState = "applied" | "pending" | "failed";
export type InstanceSeen = { readonly instanceId: string; readonly lastSeen: string };
export type ReceiptSeen = {
  readonly instanceId: string;
  readonly seq: number;
  readonly phase: "applied" | "gone" | "failed" | "refused";
  readonly detail: ReceiptDetail;
  readonly tookMs: number;
};
/** The proof of one instance. */
export type InstanceProof = InstanceSeen & {
  readonly state: ProofState;
  readonly error: string | undefined;
  /** Its own receipts of the entry, or that of the snapshot in their place. */
  readonly receipts: readonly ReceiptSeen[];
};
export type Proof = {
  readonly state: ProofState;
  readonly error: string | undefined;
  readonly lastSeen: string | undefined;
  /** The receipts of the instances that count. */
  readonly receipts: readonly ReceiptSeen[];
  /**
   * The instances that count, and the others of the last day: one that is cut off goes on serving what it
   * has.
   */
  readonly instances: readonly InstanceProof[];
};

/** Pure. `receipts` are those of the entry and those of snapshots at or behind it. */
export function proofOf(
  seq: number,
  instances: readonly InstanceSeen[],
  receipts: readonly ReceiptSeen[],
  nowMs: number,
): Proof {
  const byLastSeen = instances
    .toSorted((a, b) => (a.lastSeen < b.lastSeen ? 1 : -1))
    .map((instance) => judged(seq, instance, receipts));
  const counting = countingOf(byLastSeen, nowMs);
  const failed = counting.find(({ state }) => state === "failed");
  const proven = counting.length > 0 && counting.every(({ state }) => state === "applied");
  return {
    state: failed !== undefined ? "failed" : proven ? "applied" : "pending",
    error: failed?.error,
    lastSeen: byLastSeen[0]?.lastSeen,
    receipts: counting.flatMap((instance) => instance.receipts),
    instances: listedOf(byLastSeen, nowMs),
  };
}

/** No agent of the deployment ever connected: there is nobody to wait for, and its first one takes the state as it is then. */
export function isAbsent({ instances }: Pick<Proof, "instances">): boolean {
  return instances.length === 0;
}

/** Shows a proof as the API does. */
export function shownProof(proof: Pick<Proof, "instances" | "state" | "error">) {
  const { error, state } = proof;
  return {
    state: isAbsent(proof) ? ("absent" as const) : state,
    ...(error !== undefined && { error }),
  };
}

type Sight = { readonly lastSeen: string };

/** Pure. The instances that count: those seen lately; where none was, the one seen last. Newest sight first, as given. */
export function countingOf<T extends Sight>(byLastSeen: readonly T[], nowMs: number): readonly T[] {
  return seenWithin(byLastSeen, seenLatelyMs, nowMs);
}

/** Pure. The instances that are shown: those of the last day; where there is none, the one seen last. */
export function listedOf<T extends Sight>(byLastSeen: readonly T[], nowMs: number): readonly T[] {
  return seenWithin(byLastSeen, listedForMs, nowMs);
}

function seenWithin<T extends Sight>(
  byLastSeen: readonly T[],
  ms: number,
  nowMs: number,
): readonly T[] {
  const seen = byLastSeen.filter(({ lastSeen }) => nowMs - Date.parse(lastSeen) <= ms);
  return seen.length > 0 ? seen : byLastSeen.slice(0, 1);
}

function judged(
  seq: number,
  instance: InstanceSeen,
  receipts: readonly ReceiptSeen[],
): InstanceProof {
  const its = receipts.filter(({ instanceId }) => instanceId === instance.instanceId);
  const own = newest(its.filter((receipt) => receipt.seq === seq));
  const relied = own.length > 0 ? own : its.filter((receipt) => receipt.seq > seq).slice(0, 1);
  const failed = own.find(({ phase }) => phase === "failed" || phase === "refused");
  const applied = relied.some(({ phase }) => phase === "applied");
  return {
    ...instance,
    state: failed !== undefined ? "failed" : applied ? "applied" : "pending",
    error: failed === undefined ? undefined : reasonOf(failed),
    receipts: relied,
  };
}

/** A correction takes the place of all that was told of the entry before it. */
function newest(own: readonly ReceiptSeen[]): readonly ReceiptSeen[] {
  const last = Math.max(0, ...own.map(correctionOf));
  return own.filter((receipt) => correctionOf(receipt) === last);
}

function correctionOf({ detail }: ReceiptSeen): number {
  return countOf(detail, "correction") ?? 0;
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

/** Where an entry stands. */
export type JournalPlace = { readonly deploymentSiteId: number; readonly seq: number };

const idColumn = { id: "integer" } as const;
const placeColumns = { id: "integer", seq: "bigint" } as const;

/** Reads the proofs of many entries with a few statements. What it returns answers for these places alone. */
export async function readProofs(
  db: Queries,
  places: readonly JournalPlace[],
  nowMs: number,
): Promise<(place: JournalPlace) => Proof> {
  const sites = [...new Set(places.map(({ deploymentSiteId }) => deploymentSiteId))];
  const instances = new Map<number, InstanceSeen[]>();
  const receipts = new Map<number, ReceiptSeen[]>();
  const columns = ["deployment_site_id as siteId", "instance_id as instanceId"] as const;
  for (const part of parts(sites, rowsAtOnce(db))) {
    const ids = part.map((id) => ({ id }));
    const among = sql<number>`(SELECT id FROM ${listed(db, idColumn, ids)} AS given)`;
    const seen = await db
      .selectFrom("instances")
      .select([...columns, "last_seen as lastSeen"])
      .where("deployment_site_id", "in", among)
      .execute();
    for (const { siteId, ...one } of seen) push(instances, siteId, one);
    const snapshots = await db
      .selectFrom("receipts")
      .select([...columns, "seq", "phase", "detail", "took_ms as tookMs"])
      .where("deployment_site_id", "in", among)
      .where("phase", "=", "applied")
      .where("detail", "like", '%"snapshot":true%')
      .execute();
    for (const { siteId, ...row } of snapshots) {
      const receipt = { ...row, detail: parseDetail(row.detail) };
      if (receipt.detail["snapshot"] === true) push(receipts, siteId, receipt);
    }
  }
  const own = new Map<string, ReceiptSeen[]>();
  for (const part of parts(places, rowsAtOnce(db))) {
    const asked = part.map(({ deploymentSiteId: id, seq }) => ({ id, seq }));
    const { rows } = await sql<OwnRow>`
      SELECT receipts.deployment_site_id AS "siteId", instance_id AS "instanceId", receipts.seq, phase, detail,
        took_ms AS "tookMs"
      FROM ${listed(db, placeColumns, asked)} AS asked
      CROSS JOIN receipts
      WHERE receipts.deployment_site_id = asked.id AND receipts.seq = asked.seq
    `.execute(db);
    for (const { siteId, ...row } of rows)
      push(own, `${siteId} ${row.seq}`, { ...row, detail: parseDetail(row.detail) });
  }
  return ({ deploymentSiteId: id, seq }) => {
    const later = (receipts.get(id) ?? []).filter((receipt) => receipt.seq > seq);
    return proofOf(
      seq,
      instances.get(id) ?? [],
      [...(own.get(`${id} ${seq}`) ?? []), ...later],
      nowMs,
    );
  };
}

type OwnRow = Omit<ReceiptSeen, "detail"> & { readonly siteId: number; readonly detail: string };

function push<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
