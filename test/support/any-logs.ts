// The engine of request logs that a test runs on: files of days, or, within `logsOnPostgres`, a database that stands for
// their directory.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "vitest";
import type { KeptNumbers } from "../../src/central/agents/kept-numbers.ts";
import type { LogDays } from "../../src/central/agents/log-days.ts";
import type { LogWriter } from "../../src/central/agents/log-engine.ts";
import type { LogDatabaseWay } from "../../src/central/agents/log-messages.ts";
import { OpenDays } from "../../src/central/agents/log-open-days.ts";
import { LogStore } from "../../src/central/agents/log-store.ts";
import {
  logPlaceText,
  type LogDatabase,
} from "../../src/central/agents/postgres-logs/log-database.ts";
import { PostgresDays } from "../../src/central/agents/postgres-logs/postgres-days.ts";
import { PostgresKeptNumbers } from "../../src/central/agents/postgres-logs/postgres-kept-numbers.ts";
import { PostgresLogStore } from "../../src/central/agents/postgres-logs/postgres-log-store.ts";
import { WaitingSql } from "../../src/central/agents/postgres-logs/waiting-sql.ts";
import type { PostgresServer } from "./postgres-server.ts";

export type LogServer = { readonly bin: string; readonly server: PostgresServer };

/** Of this test file: each runs in a module graph of its own. */
const chosen: { isMeant: boolean; on: LogServer | undefined; readonly made: Set<string> } = {
  isMeant: false,
  on: undefined,
  made: new Set(),
};

/** Said before tests are collected: those about the files themselves can tell that they are not meant. */
export function meanLogsOnPostgres(): void {
  chosen.isMeant = true;
}

export function areLogsMeantOnPostgres(): boolean {
  return chosen.isMeant;
}

/** A test about the files themselves, which is none where request logs lie in a database. */
export function testOfFiles(name: string, body: () => void | Promise<void>): void {
  if (!chosen.isMeant) test(name, body);
}

/** From now on request logs lie in databases of it. */
export function logsOnPostgres(on: LogServer): void {
  chosen.on = on;
}

/** How many databases stand for directories. */
export function logDatabasesMade(): number {
  return chosen.made.size;
}

/** The database of a directory, as threads are told of it; undefined: the files in it. */
export function testLogDatabase(directory: string): LogDatabaseWay | undefined {
  return chosen.on === undefined ? undefined : logWay(chosen.on, databaseOfLogs(directory));
}

/** A database of the server, which is made where it is not there yet. */
export function logWay({ bin, server }: LogServer, name: string): LogDatabaseWay {
  if (!chosen.made.has(name)) {
    const { host, port, user } = server.place(name);
    const at = ["-h", host, "-p", String(port), "-U", user];
    execFileSync(join(bin, "createdb"), [...at, "-T", "template0", name]);
    chosen.made.add(name);
  }
  return { database: logDatabaseAt(server, name), entry: sqlEntry };
}

const sqlEntry = pathToFileURL(join(import.meta.dirname, "sql-without-sync.ts")).href;

export function logDatabaseAt(server: PostgresServer, name: string): LogDatabase {
  const { host, port, database, user, tls } = server.place(name);
  return { host, port, database, user, tls, passwordFile: undefined };
}

export function openTestWriter(
  directory: string,
  broken: (path: string, error: unknown) => void,
): LogWriter {
  const way = testLogDatabase(directory);
  if (way === undefined) return new LogStore(directory, broken);
  return new PostgresLogStore(new WaitingSql(way), directory, logPlaceText(way.database), broken);
}

export function openTestDays(directory: string): LogDays {
  return openTestCounting(directory).days;
}

/** What the thread that counts has: days, and the numbers that are kept of those that are gone. */
export function openTestCounting(directory: string): {
  readonly days: LogDays;
  readonly kept: KeptNumbers | undefined;
} {
  const way = testLogDatabase(directory);
  const files = new OpenDays(directory);
  if (way === undefined) return { days: files, kept: undefined };
  const sql = new WaitingSql(way);
  return { days: new PostgresDays(sql, files), kept: new PostgresKeptNumbers(sql) };
}

function databaseOfLogs(directory: string): string {
  return `logs_${createHash("sha256").update(directory).digest("hex").slice(0, 24)}`;
}
