// The tables of request logs in PostgreSQL, and their migrations. Names of days are YYYY-MM-DD; µs and ms since the epoch.
//
//   log_head(day, tried_ms)            one row: the day that is written, and the lock of whoever appends. Its holder alone gives numbers to records,
//                                      so that they count up in the order in which they are committed
//   log_day(day, made, is_begun, last_id, first_us, last_us, change, token, token_before, since_change)
//                                      made: tells a day from any other of its name; last_id: the last number of a record; first_us, last_us: between
//                                      which times its records happened; the others are those of `counting` in log-tables.ts
//   lane(id, site_id, epoch, no, mark, updated_ms)   mark: the last number committed of this lane
//   series(id, site_id, domain)        what is read together; domain "": authorities of no domain, and canaries
//   canary(site_id, at_us, arrived_ms) the newest of each deployment site
//   record(id, at_us, seq, series_id, lane_id, day, line)      a partition for each day of arrival, as for the next two; line: the JSON as it came
//   gap(site_id, lane_id, from_seq, to_seq, arrived_ms, at_least, day, reason)   numbers that the agent reported as lost
//   kept_day(day, made, token, change, record_id, record_mark)   days whose numbers are kept for centrals that could not fold them, as far as they were folded
//   kept_number(day, fineness, kind, site_id, domain, at, bytes)   those numbers; kept-numbers.ts has the fields
//   bucket(minute, change, series_id, day, counts)             what is counted of a series in a minute
//
// Records, gaps, counts and the mark of a batch are one transaction. Days go by DROP TABLE: no record is ever deleted.

import { AccelError } from "../../../core/faults.ts";

const firstTables = `
  CREATE TABLE log_head (
    is_one boolean PRIMARY KEY DEFAULT true CHECK (is_one),
    day text COLLATE "C" NOT NULL, tried_ms bigint NOT NULL
  );
  INSERT INTO log_head (day, tried_ms) VALUES ('', 0);
  CREATE TABLE log_day (
    day text COLLATE "C" PRIMARY KEY, made bigint GENERATED ALWAYS AS IDENTITY, is_begun boolean NOT NULL DEFAULT false,
    last_id bigint NOT NULL DEFAULT 0,
    first_us bigint NOT NULL DEFAULT ${Number.MAX_SAFE_INTEGER}, last_us bigint NOT NULL DEFAULT 0,
    change bigint NOT NULL DEFAULT 0, token text NOT NULL DEFAULT '', token_before text NOT NULL DEFAULT '',
    since_change bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50);
  CREATE TABLE lane (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, site_id bigint NOT NULL, epoch text COLLATE "C" NOT NULL,
    no bigint NOT NULL, mark bigint NOT NULL, updated_ms bigint NOT NULL, UNIQUE (site_id, epoch, no)
  ) WITH (fillfactor = 50);
  CREATE TABLE series (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, site_id bigint NOT NULL, domain text COLLATE "C" NOT NULL,
    UNIQUE (site_id, domain)
  );
  CREATE TABLE canary (
    site_id bigint PRIMARY KEY, at_us bigint NOT NULL, arrived_ms bigint NOT NULL
  ) WITH (fillfactor = 50);
  CREATE TABLE record (
    id bigint NOT NULL, at_us bigint NOT NULL, seq bigint NOT NULL, series_id integer NOT NULL, lane_id integer NOT NULL,
    day date NOT NULL, line text NOT NULL
  ) PARTITION BY LIST (day);
  CREATE TABLE gap (
    site_id bigint NOT NULL, from_seq bigint NOT NULL, to_seq bigint NOT NULL, arrived_ms bigint NOT NULL,
    at_least bigint NOT NULL, lane_id integer NOT NULL, day date NOT NULL, reason text NOT NULL
  ) PARTITION BY LIST (day);
  CREATE TABLE bucket (
    minute bigint NOT NULL, change bigint NOT NULL, series_id integer NOT NULL, day date NOT NULL, counts bytea NOT NULL
  ) PARTITION BY LIST (day);
`;

const keptNumbers = `
  CREATE TABLE kept_day (
    day text COLLATE "C" PRIMARY KEY, made bigint NOT NULL, token text NOT NULL, change bigint NOT NULL,
    record_id bigint NOT NULL, record_mark text NOT NULL
  );
  CREATE TABLE kept_number (
    day text COLLATE "C" NOT NULL, fineness smallint NOT NULL, kind text COLLATE "C" NOT NULL, site_id bigint NOT NULL,
    domain text COLLATE "C" NOT NULL, at bigint NOT NULL, bytes bytea NOT NULL,
    PRIMARY KEY (fineness, day, kind, site_id, domain, at)
  );
`;

type LogMigration = {
  readonly statements: string;
  /** Whether a release that does not know it may work on tables that have it: it only adds. */
  readonly isExpansion: boolean;
};

const migrations: readonly LogMigration[] = [
  { statements: firstTables, isExpansion: false },
  { statements: keptNumbers, isExpansion: true },
];

/** The version that a release must know. */
const needed = migrations.findLastIndex(({ isExpansion }) => !isExpansion) + 1;

/** What every partition is made of. */
export const partitioned = ["record", "gap", "bucket"] as const;

const dayForm = /^\d{4}-\d\d-\d\d$/;

/** Returns the name of a day's partition. Throws for what is no day, which must not get into SQL. */
export function partitionOf(table: (typeof partitioned)[number], day: string): string {
  if (!dayForm.test(day)) throw new TypeError(`${day} is no day`);
  return `${table}_${day.replaceAll("-", "")}`;
}

/** Returns the statements that make the partitions of a day that has none. */
export function partitionStatements(day: string): readonly string[] {
  const [records, gaps, buckets] = partitioned.map((table) => partitionOf(table, day));
  return [
    ...partitioned.flatMap((table) => [
      `CREATE TABLE ${partitionOf(table, day)} PARTITION OF ${table} FOR VALUES IN ('${day}')`,
      // Whoever writes names the partition, and the day is its own.
      `ALTER TABLE ${partitionOf(table, day)} ALTER day SET DEFAULT '${day}'`,
    ]),
    `ALTER TABLE ${records} ADD PRIMARY KEY (id)`,
    `CREATE INDEX ON ${records} (series_id, at_us, id)`,
    `CREATE INDEX ON ${gaps} (site_id, reason)`,
    `ALTER TABLE ${buckets} ADD PRIMARY KEY (series_id, minute)`,
    `CREATE INDEX ON ${buckets} (change)`,
    `INSERT INTO log_day (day) VALUES ('${day}')`,
  ];
}

type Ask = (text: string) => Promise<readonly unknown[]>;

/** "accel" and "logs", as two numbers that nothing else here uses. */
const lockKeys = "7301, 2";

/**
 * Brings the tables to this release: of several that come at once one migrates, and the others wait for it. Throws
 * DATABASE_NEWER for those of a newer release that do not bear this one, unless they may be newer: a program that runs is not disturbed by them.
 */
export async function prepareLogTables(
  ask: Ask,
  where: string,
  mayBeNewer: boolean,
): Promise<void> {
  if (!isBefore(await levelOf(ask), where, mayBeNewer)) return;
  await ask("BEGIN");
  try {
    await ask(`SELECT pg_advisory_xact_lock(${lockKeys})`);
    const level = await levelOf(ask);
    if (isBefore(level, where, mayBeNewer)) {
      for (const { statements } of migrations.slice(level.version)) await ask(statements);
      // The first release had no `needed`.
      await ask("DROP TABLE IF EXISTS log_schema");
      await ask("CREATE TABLE log_schema (version integer NOT NULL, needed integer NOT NULL)");
      await ask(`INSERT INTO log_schema VALUES (${migrations.length}, ${needed})`);
    }
    await ask("COMMIT");
  } catch (error) {
    await ask("ROLLBACK").catch(() => undefined);
    throw error;
  }
}

/** Throws DATABASE_NEWER for tables of a newer release that do not bear this one; changes nothing. */
export async function refuseNewerLogTables(ask: Ask, where: string): Promise<void> {
  isBefore(await levelOf(ask), where, false);
}

type Level = {
  readonly version: number;
  /** The version that a release must know. */
  readonly needed: number;
};

/** Returns version 0 where there are no tables. */
async function levelOf(ask: Ask): Promise<Level> {
  // Of the catalog's rows: `to_regclass` remembers within a transaction that there was no such table before the lock was had.
  const [there] = await ask(
    "SELECT EXISTS (SELECT FROM pg_tables WHERE schemaname = 'public' AND tablename = 'log_schema') AS there",
  );
  if (Object(there)["there"] !== true) return { version: 0, needed: 0 };
  const [row] = await ask("SELECT to_jsonb(log_schema) AS told FROM log_schema");
  const told = Object(Object(row)["told"]);
  const version = Number(told["version"]);
  return { version, needed: Number(told["needed"] ?? version) };
}

function isBefore(level: Level, where: string, mayBeNewer: boolean): boolean {
  const { version } = level;
  if (level.needed > migrations.length && !mayBeNewer)
    throw new AccelError(
      "DATABASE_NEWER",
      `the request logs in ${where} are of a newer release (version ${version}, and this one knows ${migrations.length})`,
    );
  return version < migrations.length;
}
