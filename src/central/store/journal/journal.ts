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
import { pacedParts, parts } from "../engine/parts.ts";
import { isPostgres } from "../engine/statements.ts";

export type Appended = { readonly deploymentSiteId: number; readonly seq: number };

/** 2 to 3 ms each. */
const sitesPerStatement = 250;

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
  for await (const part of pacedParts(deploymentSiteIds, sitesPerStatement))
    appended.push(...(await appendPart(tx, part, { kind, at, bodyDigest: digest })));
  return appended;
}

/** Three statements for all of them. */
async function appendPart(
  tx: Tx,
  deploymentSiteIds: readonly number[],
  entry: { readonly kind: string; readonly at: string; readonly bodyDigest: Sha256 },
): Promise<readonly Appended[]> {
  const sites = await tx
    .selectFrom("deployment_sites")
    .select(["id", "journal_head", "journal_chain"])
    .where("id", "in", deploymentSiteIds)
    .orderBy("id")
    // In one order, and before the entry is written: who comes second waits here, and finds out here.
    .$if(isPostgres(tx), (query) => query.forUpdate())
    .execute();
  const next = sites.map(({ id, journal_head: head, journal_chain: before }) => {
    const seq = head + 1;
    return { id, seq, chain: nextChain(before, { ...entry, seq }) };
  });
  await tx
    .insertInto("journal")
    .values(
      next.map(({ id, seq, chain }) => ({
        deployment_site_id: id,
        seq,
        kind: entry.kind,
        at: entry.at,
        body_digest: entry.bodyDigest,
        chain,
      })),
    )
    .execute();
  const rows = sql.join(
    next.map(
      ({ id, seq, chain }) => sql`(CAST(${id} AS integer), CAST(${seq} AS bigint), ${chain})`,
    ),
  );
  await sql`
    UPDATE deployment_sites SET journal_head = next.column2, journal_chain = next.column3
    FROM (VALUES ${rows}) AS next WHERE deployment_sites.id = next.column1
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
