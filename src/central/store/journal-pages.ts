// Pages of the journals, for many agents at a time: a change that thousands are told of is thousands of channels that read one entry each, with the same body.

import { setImmediate } from "node:timers/promises";
import { sql } from "kysely";
import { Together } from "../../base/together.ts";
import { journalPageEntriesMax, type JournalEntry } from "../../wire/journal.ts";
import type { Store } from "./database.ts";
import { journalEntry, parseBody, readJournal } from "./journal.ts";

export type JournalPage = {
  readonly entries: readonly JournalEntry[];
  /** There were no more when they were read. */
  readonly isLast: boolean;
};

type Asked = { readonly deploymentSiteId: number; readonly afterSeq: number };

/** Half of a channel message. */
const pageBytesMax = 4 * 2 ** 20;
/** Nearly always one of these is all there is. */
const fewEntries = 3;
/** 2 to 3 ms. */
const sitesPerRead = 250;

export class JournalPages {
  readonly #store: Store;
  readonly #few: Together<Asked, readonly JournalEntry[]>;

  constructor(store: Store) {
    this.#store = store;
    this.#few = new Together({
      run: (all) => readFew(store, all),
      gather: () => setImmediate(),
      weightMax: sitesPerRead,
    });
  }

  /** What stands behind a position. Of more than a few the sizes are asked for first, so that a page of large bodies is never read whole. */
  async after(deploymentSiteId: number, afterSeq: number): Promise<JournalPage> {
    const few = await this.#few.ask({ deploymentSiteId, afterSeq });
    if (few.length < fewEntries) return { entries: few, isLast: true };
    const sizes = await this.#store
      .selectFrom("journal")
      .innerJoin("journal_bodies", "journal_bodies.digest", "journal.body_digest")
      .select(sql<number>`octet_length(journal_bodies.body)`.as("bytes"))
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

/** Bodies that several have in common are read and parsed once. Without gaps in the numbers, a few are those that follow. */
async function readFew(
  store: Store,
  all: readonly Asked[],
): Promise<readonly (readonly JournalEntry[])[]> {
  const asked = sql.join(
    all.map(
      ({ deploymentSiteId: id, afterSeq: seq }, no) =>
        sql`(CAST(${no} AS integer), CAST(${id} AS integer), CAST(${seq} AS bigint))`,
    ),
  );
  type Row = { no: number; seq: number; kind: string; at: string; chain: string; digest: string };
  const { rows } = await sql<Row>`
    SELECT asked.column1 AS no, seq, kind, at, chain, body_digest AS digest
    FROM (VALUES ${asked}) AS asked
    CROSS JOIN journal
    WHERE deployment_site_id = asked.column2
      AND seq > asked.column3 AND seq <= asked.column3 + ${sql.lit(fewEntries)}
    ORDER BY asked.column1, seq
  `.execute(store);
  const digests = [...new Set(rows.map(({ digest }) => digest))];
  const bodies =
    digests.length === 0
      ? []
      : await store
          .selectFrom("journal_bodies")
          .select(["digest", "body"])
          .where("digest", "in", digests)
          .execute();
  const parsed = new Map(bodies.map(({ digest, body }) => [digest, parseBody(body)]));
  const entries: JournalEntry[][] = all.map(() => []);
  for (const { no, digest, ...row } of rows) {
    const body = parsed.get(digest);
    // A reader does not see the rows and their bodies at one moment; bodies of entries are not removed.
    if (body === undefined) throw new TypeError(`the journal lacks the body ${digest}`);
    entries[no]?.push(journalEntry(row, body));
  }
  return entries;
}
