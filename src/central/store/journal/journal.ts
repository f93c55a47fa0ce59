// The journal of each deployment site: appended in the transaction that changes what the entry tells about, read by position.
//
// seq counts from 1 without gaps per site; bodies are stored once and shared by all sites; chain by core/journal-chain.

import { sql } from "kysely";
import { bodyDigest, nextChain } from "../../../core/journal/journal-chain.ts";
import type { JournalHead } from "../../../core/journal/journal-part.ts";
import { canonicalJson } from "../../../core/journal/canonical-json.ts";
import type {
  JournalBody,
  JournalEntry,
  JournalExtension,
  JournalKind,
} from "../../../wire/journal.ts";
import type { Sha256 } from "../../../core/ids.ts";
import type { Queries, Tx } from "../engine/database.ts";
import { listed, rowsAtOnce } from "../engine/listed.ts";
import { pacedParts, parts } from "../engine/parts.ts";
import { isPostgres } from "../engine/statements.ts";

export type Appended = { readonly deploymentSiteId: number; readonly seq: number };

/**
 * Appends one entry to each site. The caller wakes their channels after the commit. `at` is ISO 8601. A body
 * with an `extension` must be one that no other entry has, for the two are stored together.
 */
export async function appendJournal<K extends JournalKind>(
  tx: Tx,
  deploymentSiteIds: readonly number[],
  kind: K,
  body: JournalBody<K>,
  at: string,
  extension?: JournalExtension<K>,
): Promise<readonly Appended[]> {
  if (deploymentSiteIds.length === 0) return [];
  const digest = bodyDigest(body);
  await tx
    .insertInto("journal_bodies")
    .values({
      digest,
      body: canonicalJson(body),
      extension: extension === undefined ? null : JSON.stringify(extension),
    })
    .onConflict((conflict) => conflict.column("digest").doNothing())
    .execute();
  const appended: Appended[] = [];
  const entry = { kind, at, bodyDigest: digest };
  for await (const part of pacedParts(await takeHeads(tx, deploymentSiteIds), rowsAtOnce(tx)))
    appended.push(...(await appendPart(tx, part, entry)));
  return appended;
}

type SiteHead = { readonly id: number; readonly seq: number; readonly chain: string };

/**
 * Reads where the journals end, and on PostgreSQL locks them, all of them and in one order, before the first entry is written: who comes second waits here, and finds out here.
 * What refers to the sites' rows meanwhile, such as what agents tell, waits for nobody.
 */
async function takeHeads(
  tx: Tx,
  deploymentSiteIds: readonly number[],
): Promise<readonly SiteHead[]> {
  const heads: SiteHead[] = [];
  const inOrder = deploymentSiteIds.toSorted((a, b) => a - b).map((id) => ({ id }));
  for await (const part of pacedParts(inOrder, rowsAtOnce(tx)))
    heads.push(
      ...(await tx
        .selectFrom("deployment_sites")
        .select(["id", "journal_head as seq", "journal_chain as chain"])
        .where("id", "in", sql<number>`(SELECT id FROM ${listed(tx, idColumn, part)} AS given)`)
        .orderBy("id")
        .$if(isPostgres(tx), (query) => query.forNoKeyUpdate())
        .execute()),
    );
  return heads;
}

const idColumn = { id: "integer" } as const;
const headColumns = { id: "integer", seq: "bigint", chain: "text" } as const;

/** Two statements for all of them. */
async function appendPart(
  tx: Tx,
  heads: readonly SiteHead[],
  entry: { readonly kind: string; readonly at: string; readonly bodyDigest: Sha256 },
): Promise<readonly Appended[]> {
  const { kind, at, bodyDigest: digest } = entry;
  const next = heads.map(({ id, seq: head, chain: before }) => {
    const seq = head + 1;
    return { id, seq, chain: nextChain(before, { ...entry, seq }) };
  });
  const given = listed(tx, headColumns, next);
  await sql`
    INSERT INTO journal (deployment_site_id, seq, kind, at, body_digest, chain)
    SELECT id, seq, CAST(${kind} AS text), CAST(${at} AS text), CAST(${digest} AS text), chain FROM ${given} AS given
  `.execute(tx);
  await sql`
    UPDATE deployment_sites SET journal_head = given.seq, journal_chain = given.chain
    FROM ${given} AS given WHERE deployment_sites.id = given.id
  `.execute(tx);
  return next.map(({ id, seq }) => ({ deploymentSiteId: id, seq }));
}

export async function readJournal(
  db: Queries,
  deploymentSiteId: number,
  afterSeq: number,
  limit: number,
): Promise<readonly JournalEntry[]> {
  const rows = await db
    .selectFrom("journal")
    .innerJoin("journal_bodies", "journal_bodies.digest", "journal.body_digest")
    .select(["seq", "kind", "at", "chain", "journal_bodies.body as body", "extension"])
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("seq", ">", afterSeq)
    .orderBy("seq")
    .limit(limit)
    .execute();
  return rows.map(({ body, extension, ...row }) =>
    journalEntry(row, parseBodies({ body, extension })),
  );
}

export type Bodies = Pick<JournalEntry, "body" | "extension">;

/** Parses what appendJournal alone has written: JSON objects. */
export function parseBodies({
  body,
  extension,
}: {
  readonly body: string;
  readonly extension: string | null;
}): Bodies {
  const parse = (text: string): Bodies["body"] => JSON.parse(text) as Bodies["body"];
  return { body: parse(body), ...(extension !== null && { extension: parse(extension) }) };
}

export function journalEntry(
  row: { readonly seq: number; readonly kind: string; readonly at: string; readonly chain: Sha256 },
  bodies: Bodies,
): JournalEntry {
  const { seq, kind, at, chain } = row;
  return { seq, kind, at, chain, ...bodies };
}

export async function journalHead(db: Queries, deploymentSiteId: number): Promise<JournalHead> {
  const { journal_head: seq, journal_chain: chain } = await db
    .selectFrom("deployment_sites")
    .select(["journal_head", "journal_chain"])
    .where("id", "=", deploymentSiteId)
    .executeTakeFirstOrThrow();
  return { seq, chain };
}

/** Returns the heads of those sites that exist. */
export async function journalHeads(
  db: Queries,
  deploymentSiteIds: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const heads = new Map<number, number>();
  for (const part of parts(deploymentSiteIds)) {
    const rows = await db
      .selectFrom("deployment_sites")
      .select(["id", "journal_head"])
      .where("id", "in", part)
      .execute();
    for (const { id, journal_head: seq } of rows) heads.set(id, seq);
  }
  return heads;
}

/** The chain digest at a position; undefined where the journal has no such entry. */
export async function chainAt(
  db: Queries,
  deploymentSiteId: number,
  seq: number,
): Promise<string | undefined> {
  const row = await db
    .selectFrom("journal")
    .select("chain")
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("seq", "=", seq)
    .executeTakeFirst();
  return row?.chain;
}
