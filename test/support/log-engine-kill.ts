// Kills whoever writes request logs into PostgreSQL in the middle of a batch's transaction: the program, or the server's
// process that serves it, which takes all others of the server with it. The judge then reads what is there.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type pg from "pg";
import { RequestCounts } from "../../src/core/analytics/request-counts.ts";
import type { LogDatabaseWay } from "../../src/central/agents/log-messages.ts";
import type { PostgresServer } from "./postgres-server.ts";
import { until } from "./until.ts";

const child = join(import.meta.dirname, "log-database-append-child.ts");

export type KillRun = {
  readonly server: PostgresServer;
  readonly way: LogDatabaseWay;
  /** An empty directory, where files of before would be. */
  readonly directory: string;
  readonly kills: number;
  readonly onKill: (so: { readonly kills: number; readonly acknowledged: number }) => void;
};

export type KillOutcome = {
  readonly ofPrograms: number;
  readonly ofServers: number;
  /** Batches that were answered as committed, or as committed before. */
  readonly acknowledged: number;
  /** What each lane was last told, by its number. */
  readonly told: ReadonlyMap<string, number>;
};

/** Every other kill is the server's. */
export async function killWriters(run: KillRun): Promise<KillOutcome> {
  const told = new Map<string, number>();
  let acknowledged = 0;
  let writer = startWriter(run, hear);
  function hear(no: string, through: number): void {
    acknowledged++;
    told.set(no, Math.max(through, told.get(no) ?? 0));
  }
  try {
    for (let kill = 1; kill <= run.kills; kill++) {
      const before = acknowledged;
      await until("a batch is acknowledged again", () => acknowledged > before);
      const backend = await inTransaction(run);
      if (kill % 2 === 0) process.kill(backend, "SIGKILL");
      else {
        await ended(writer);
        writer = startWriter(run, hear);
      }
      run.onKill({ kills: kill, acknowledged });
    }
    const before = acknowledged;
    await until("it goes on after the last kill", () => acknowledged > before);
  } finally {
    await ended(writer);
  }
  const ofServers = Math.floor(run.kills / 2);
  return { ofPrograms: run.kills - ofServers, ofServers, acknowledged, told };
}

function startWriter(
  { directory, way }: KillRun,
  hear: (no: string, through: number) => void,
): ChildProcess {
  const program = spawn(process.execPath, [child, directory, JSON.stringify(way)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let rest = "";
  program.stdout.on("data", (chunk: Buffer) => {
    const lines = `${rest}${chunk.toString()}`.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const [no = "", through = ""] = line.split(" ");
      hear(no, Number(through));
    }
  });
  return program;
}

async function ended(program: ChildProcess): Promise<void> {
  if (program.exitCode !== null || program.signalCode !== null) return;
  const exited = once(program, "exit");
  program.kill("SIGKILL");
  await exited;
}

/** Resolves with the process of the server that has moved marks, or copies records, and has not committed. */
async function inTransaction({ server, way }: KillRun): Promise<number> {
  const { database } = way.database;
  // A server that was just killed recovers, and takes connections again.
  const client = await until("the server takes connections", async () => {
    const made = server.client(database);
    await made.connect();
    return made;
  });
  try {
    return await until("a batch is being written", async () => {
      const { rows } = await client.query<{ pid: number }>(
        `SELECT pid FROM pg_stat_activity
         WHERE application_name = 'accel-central logs' AND xact_start IS NOT NULL AND query ~ '^(INSERT|COPY|UPDATE log_day)'`,
      );
      return rows[0]?.pid;
    });
  } finally {
    await client.end();
  }
}

/** What there is of each lane: its mark, how many numbers records and gaps cover, how many of them are covered twice, and the last one. */
type LaneSum = {
  readonly no: string;
  readonly mark: number;
  readonly covered: number;
  readonly twice: number;
  readonly last: number;
};

/** Returns the marks by the lane's number. Throws what does not agree: numbers that are missing or there twice, and counts. */
export async function judgeLogDatabase(client: pg.Client): Promise<ReadonlyMap<string, number>> {
  const { rows: lanes } = await client.query<LaneSum>(
    `WITH covered AS (
       SELECT lane_id, seq FROM record
       UNION ALL SELECT lane_id, generate_series(from_seq, to_seq) FROM gap
     ), counted AS (SELECT lane_id, seq, count(*) AS times FROM covered GROUP BY lane_id, seq)
     SELECT l.no::text, l.mark::float8 AS mark, count(c.seq)::float8 AS covered,
       coalesce(sum(c.times - 1), 0)::float8 AS twice, coalesce(max(c.seq), 0)::float8 AS last
     FROM lane l LEFT JOIN counted c ON c.lane_id = l.id GROUP BY l.no, l.mark`,
  );
  for (const { no, mark, covered, twice, last } of lanes)
    if (twice > 0 || covered !== mark || last !== mark)
      throw new Error(
        `lane ${no}: ${covered} numbers up to ${last}, ${twice} of them twice, mark ${mark}`,
      );
  await judgeCounts(client);
  return new Map(lanes.map(({ no, mark }) => [no, mark]));
}

/** As `judgeLogDatabase`, on a connection of its own. */
export async function judgeLogsAt(
  server: PostgresServer,
  database: string,
): Promise<ReadonlyMap<string, number>> {
  const client = server.client(database);
  await client.connect();
  try {
    return await judgeLogDatabase(client);
  } finally {
    await client.end();
  }
}

/** What minutes were counted as is what the records and gaps are. */
async function judgeCounts(client: pg.Client): Promise<void> {
  const { rows: buckets } = await client.query<{ counts: Uint8Array }>("SELECT counts FROM bucket");
  const sum = new RequestCounts();
  for (const { counts } of buckets) sum.merge(RequestCounts.of(counts));
  const { rows } = await client.query<{ requests: number; missing: number }>(
    `SELECT (SELECT count(*) FROM record r JOIN series s ON s.id = r.series_id WHERE s.domain <> '')::float8 AS requests,
       (SELECT coalesce(sum(at_least), 0) FROM gap)::float8 AS missing`,
  );
  const { requests = 0, missing = 0 } = rows[0] ?? {};
  if (sum.requests !== requests || sum.missingAtLeast !== missing)
    throw new Error(
      `${requests} records and ${missing} missing are counted as ${sum.requests} and ${sum.missingAtLeast}`,
    );
}
