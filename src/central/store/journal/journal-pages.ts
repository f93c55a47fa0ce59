// Pages of the journals, for many agents at a time: a change that thousands are told of is thousands of channels that read one entry each, with the same body.

import type { Sha256 } from "../../../core/ids.ts";
import { setImmediate } from "node:timers/promises";
import { sql } from "kysely";
import { Together } from "../../../base/together.ts";
import type { JournalPart } from "../../../core/journal/journal-part.ts";
import { journalPageEntriesMax, type JournalEntry } from "../../../wire/journal.ts";
import type { Store } from "../engine/database.ts";
import { journalEntry, parseBodies, readJournal, type Bodies } from "./journal.ts";
import { listed, rowsAtOnce } from "../engine/listed.ts";
import { pacedParts, parts } from "../engine/parts.ts";
import { isStoreUnreachable } from "../engine/postgres-faults.ts";
import { isPostgres } from "../engine/statements.ts";

type Asked = { readonly deploymentSiteId: number; readonly afterSeq: number };

/** Half of a channel message. */
const pageBytesMax = 4 * 2 ** 20;
/** Nearly always one of these is all there is. */
const fewEntries = 3;
/** They may be large, and all that are read in one turn are parsed in it. */
const bodiesPerRead = 16;

export class JournalPages {
  readonly #store: Store;
  readonly #few: Together<Asked, readonly JournalEntry[]>;

  constructor(store: Store) {
    this.#store = store;
    this.#few = new Together({
      run: (all) => readFew(store, all),
      gather: () => setImmediate(),
      weightMax: rowsAtOnce(store),
      failsAll: isStoreUnreachable,
    });
  }

  /**
   * Reads what stands behind a position. Of more than a few entries it asks for the sizes first, so that a
   * page of large bodies is never read whole.
   */
  async after(deploymentSiteId: number, afterSeq: number): Promise<JournalPart<JournalEntry>> {
    const few = await this.#few.ask({ deploymentSiteId, afterSeq });
    if (few.length < fewEntries) return { entries: few, isLast: true };
    const sizes = await this.#store
      .selectFrom("journal")
      .innerJoin("journal_bodies", "journal_bodies.digest", "journal.body_digest")
      .select(
        sql<number>`octet_length(journal_bodies.body) + octet_length(coalesce(extension, ''))`.as(
          "bytes",
        ),
      )
      .where("deployment_site_id", "=", deploymentSiteId)
      .where("seq", ">", afterSeq)
      .orderBy("seq")
      .limit(journalPageEntriesMax)
      .execute();
    let bytes = 0;
    const tooMany = sizes.findIndex((row) => (bytes += row.bytes) > pageBytesMax);
    const count = tooMany < 0 ? sizes.length : Math.max(1, tooMany);
    const entries = await readJournal(this.#store, deploymentSiteId, afterSeq, count);
    return { entries, isLast: count === sizes.length && count < journalPageEntriesMax };
  }
}

/** Bodies that several have in common are read and parsed once. */
async function readFew(
  store: Store,
  all: readonly Asked[],
): Promise<readonly (readonly JournalEntry[])[]> {
  const entries: JournalEntry[][] = all.map(() => []);
  const rows: FewRow[] = [];
  for (const part of parts(
    all.map((asked, no) => ({ ...asked, no })),
    rowsAtOnce(store),
  ))
    rows.push(...(await readRows(store, part)));
  const bodies = await readBodies(store, new Set(rows.map(({ digest }) => digest)));
  for (const { no, digest, ...row } of rows) {
    const body = bodies.get(digest);
    // They are read behind the rows; bodies of entries are not removed.
    if (body === undefined) throw new TypeError(`the journal lacks the body ${digest}`);
    entries[no]?.push(journalEntry(row, body));
  }
  return entries;
}

/** `no`: of the one who asked. */
type FewRow = {
  readonly no: number;
  readonly seq: number;
  readonly kind: string;
  readonly at: string;
  readonly chain: Sha256;
  readonly digest: Sha256;
};

const askedColumns = { no: "integer", id: "integer", after: "bigint" } as const;

/** Numbers have no gaps: a few are those that follow. */
async function readRows(
  store: Store,
  part: readonly (Asked & { readonly no: number })[],
): Promise<readonly FewRow[]> {
  const asked = part.map(({ no, deploymentSiteId, afterSeq }) => {
    return { no, id: deploymentSiteId, after: afterSeq };
  });
  // PostgreSQL would rather read the journals of all sites than look up thousands.
  const behind = isPostgres(store)
    ? sql`CROSS JOIN LATERAL (
        SELECT * FROM journal WHERE deployment_site_id = asked.id AND seq > asked.after ORDER BY seq LIMIT ${sql.lit(fewEntries)}
      ) AS few`
    : sql`CROSS JOIN journal
        WHERE deployment_site_id = asked.id AND seq > asked.after AND seq <= asked.after + ${sql.lit(fewEntries)}`;
  const { rows } = await sql<FewRow>`
    SELECT asked.no, seq, kind, at, chain, body_digest AS digest
    FROM ${listed(store, askedColumns, asked)} AS asked ${behind}
    ORDER BY asked.no, seq
  `.execute(store);
  return rows;
}

async function readBodies(
  store: Store,
  digests: ReadonlySet<Sha256>,
): Promise<ReadonlyMap<string, Bodies>> {
  const bodies = new Map<string, Bodies>();
  for await (const part of pacedParts([...digests], bodiesPerRead)) {
    const rows = await store
      .selectFrom("journal_bodies")
      .select(["digest", "body", "extension"])
      .where("digest", "in", part)
      .execute();
    for (const { digest, ...row } of rows) bodies.set(digest, parseBodies(row));
  }
  return bodies;
}
