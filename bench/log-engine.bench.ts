// Request logs in PostgreSQL beside those in files, in one run and in turn: records a second and bytes a record of the intake, with its decoding, checks and counts, and
// the newest page of a busy domain. `--records N` (200,000), `--rounds N` (5). COPY is compared with an INSERT of arrays in the same rounds.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { LogArchive } from "../src/central/agents/log-archive.ts";
import type { LogDays } from "../src/central/agents/log-days.ts";
import type { LogWriter } from "../src/central/agents/log-engine.ts";
import { OpenDays } from "../src/central/agents/log-open-days.ts";
import { LogStore } from "../src/central/agents/log-store.ts";
import {
  copyText,
  rowsOf,
  type CopiedRecord,
} from "../src/central/agents/postgres-logs/batch-rows.ts";
import { decodeBatch } from "../src/central/agents/log-batch.ts";
import { logPlaceText } from "../src/central/agents/postgres-logs/log-database.ts";
import { partitionOf } from "../src/central/agents/postgres-logs/log-schema.ts";
import { PostgresDays } from "../src/central/agents/postgres-logs/postgres-days.ts";
import { PostgresLogStore } from "../src/central/agents/postgres-logs/postgres-log-store.ts";
import { WaitingSql } from "../src/central/agents/postgres-logs/waiting-sql.ts";
import type { LogDatabaseWay } from "../src/central/agents/log-messages.ts";
import { logWay } from "../test/support/any-logs.ts";
import { postgresBin, PostgresServer } from "../test/support/postgres-server.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { Traffic, type Batch } from "./analytics/traffic.ts";
import { medianWithInterval } from "./support/interval.ts";
import { Figures } from "./support/figures.ts";

const domain = "busy.example.com";
const beginS = 1_900_000_000;
const perBatch = 2_000;
const perSecond = 1_000;
const pageLimit = 1_000;
const lane = { epoch: "00000000000000a7", no: 1 };

type Measured = { readonly perS: number; readonly bytes: number; readonly pageMs: number };

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const bin = postgresBin();
  if (bin === undefined) throw new Error("it needs PostgreSQL 15: apt install postgresql");
  const [records, rounds] = [numberOf(args, "--records", 200_000), numberOf(args, "--rounds", 5)];
  await using server = await PostgresServer.start(bin, {
    isDurable: true,
    settings: ["shared_buffers=256MB", "max_wal_size=4GB"],
  });
  const batches = batchesOf(records);
  const found = { files: [] as Measured[], database: [] as Measured[] };
  const inserts = { copy: [] as number[], arrays: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    found.files.push(inFiles(batches));
    const way = logWay({ bin, server }, `round_${round}`);
    found.database.push(inDatabase(way, batches));
    const sent = insertsOf(way, batches);
    inserts.copy.push(sent.copy);
    inserts.arrays.push(sent.arrays);
  }
  const figures = new Figures(say);
  figures.head(
    `${records.toLocaleString("en")} records, ${rounds} rounds in turn, each commit on the disk`,
  );
  for (const name of ["files", "database"] as const) {
    const of = (what: keyof Measured): number =>
      medianWithInterval(found[name].map((one) => one[what])).median;
    figures.add(`${name}: records a second`, of("perS"), "/s");
    figures.add(`${name}: bytes a record`, of("bytes"), "B");
    figures.add(`${name}: the newest ${pageLimit} of the domain`, of("pageMs"), "ms");
  }
  for (const [name, list] of Object.entries(inserts))
    figures.add(`records alone, by ${name}`, medianWithInterval(list).median, "/s");
}

function numberOf(args: readonly string[], name: string, fallback: number): number {
  const at = args.indexOf(name);
  return at < 0 ? fallback : Number(args[at + 1]);
}

function batchesOf(records: number): readonly Batch[] {
  const traffic = new Traffic(domain, 5);
  return Array.from({ length: Math.ceil(records / perBatch) }, (_, no) => {
    const fromS = beginS + (no * perBatch) / perSecond;
    return traffic.batch(perBatch, fromS, fromS + perBatch / perSecond);
  });
}

function inFiles(batches: readonly Batch[]): Measured {
  using dir = tempDir();
  using store = new LogStore(dir.path, broken);
  return measured(store, () => new OpenDays(dir.path), batches);
}

function inDatabase(way: LogDatabaseWay, batches: readonly Batch[]): Measured {
  using dir = tempDir();
  const logs = join(dir.path, "logs");
  mkdirSync(logs);
  const where = logPlaceText(way.database);
  using store = new PostgresLogStore(new WaitingSql(way), logs, where, broken);
  const days = (): LogDays => new PostgresDays(new WaitingSql(way), new OpenDays(logs));
  return measured(store, days, batches);
}

function broken(path: string): never {
  throw new Error(`${path} is broken`);
}

function measured(store: LogWriter, days: () => LogDays, batches: readonly Batch[]): Measured {
  store.append([requestOf(batches[0], 1)]); // The day is begun.
  const total = (batches.length - 1) * perBatch;
  const began = performance.now();
  for (const [no, batch] of batches.slice(1).entries())
    store.append([requestOf(batch, 1 + (no + 1) * perBatch)]);
  const perS = total / ((performance.now() - began) / 1e3);
  const bytes = store.stats().bytes / (batches.length * perBatch);
  using archive = new LogArchive(days());
  const page = (): void => {
    const asked = { siteId: 1, domain, limit: pageLimit, after: undefined };
    const read = archive.read({ ...asked, since: undefined, until: undefined });
    if (read.kind !== "page" || read.lines.length !== pageLimit) throw new Error("no page");
  };
  page();
  const beganPage = performance.now();
  page();
  return { perS, bytes, pageMs: performance.now() - beganPage };
}

function requestOf(batch: Batch | undefined, firstSeq: number) {
  const lastSeq = firstSeq + perBatch - 1;
  const body = batch?.body ?? Buffer.alloc(0);
  const own = { siteId: 1, lane, firstSeq, lastSeq, encoding: "identity" as const };
  return { ...own, body, nowMs: beginS * 1e3 };
}

/** Records a second into a partition of their own, each batch a transaction: by COPY, and by an INSERT of arrays. */
function insertsOf(way: LogDatabaseWay, batches: readonly Batch[]) {
  using sql = new WaitingSql(way);
  const table = partitionOf("record", new Date(beginS * 1e3).toISOString().slice(0, 10));
  const rows = batches.map((batch, no) => copiedOf(batch, 1 + no * perBatch));
  const measure = (send: (records: readonly CopiedRecord[]) => void): number => {
    sql.query(`TRUNCATE ${table}`);
    const began = performance.now();
    for (const records of rows) sql.transact(() => send(records));
    return (rows.length * perBatch) / ((performance.now() - began) / 1e3);
  };
  const columns = "(id, at_us, seq, series_id, lane_id, line)";
  return {
    copy: measure((records) => sql.copy(`COPY ${table} ${columns} FROM STDIN`, copyText(records))),
    arrays: measure((records) =>
      sql.query(
        `INSERT INTO ${table} ${columns} SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::int[], $6::text[])`,
        [
          records.map(({ id }) => id),
          records.map(({ row }) => row.atUs),
          records.map(({ row }) => row.seq),
          records.map(({ seriesId }) => seriesId),
          records.map(({ laneId }) => laneId),
          records.map(({ row }) => row.line),
        ],
      ),
    ),
  };
}

function copiedOf({ body }: Batch, firstId: number): readonly CopiedRecord[] {
  const read = decodeBatch(body, "identity", 1, perBatch);
  if (read.kind !== "batch") throw new Error(read.message);
  const batch = { siteId: 1, lane, lastSeq: perBatch, ...read, nowMs: beginS * 1e3 };
  return rowsOf([batch]).records.map((row, at) => ({
    id: firstId + at,
    row,
    seriesId: 1,
    laneId: 1,
  }));
}
