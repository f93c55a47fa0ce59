// The inside of the threads of request logs: they handle requests from the main thread in order. Batches
// that wait beside each other are committed together.

import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import { messageOf } from "../../core/faults.ts";
import { AnalyticsStore, type AnalyticsPlace } from "./analytics.ts";
import { LogArchive, type BrokenDay, type ReadRequest } from "./log-archive.ts";
import type {
  LogAnswer,
  LogRequest,
  LogResult,
  LogResults,
  LogThreadInit,
  NumberedRequest,
  RecordRequest,
  ShownPage,
} from "./log-messages.ts";
import { OpenDays } from "./log-open-days.ts";
import { formatPosition } from "./log-position.ts";
import type { LogDays } from "./log-days.ts";
import type { LogWriter } from "./log-engine.ts";
import { LogStore } from "./log-store.ts";
import { logPlaceText } from "./postgres-logs/log-database.ts";
import { PostgresDays } from "./postgres-logs/postgres-days.ts";
import { PostgresKeptNumbers } from "./postgres-logs/postgres-kept-numbers.ts";
import { PostgresLogStore } from "./postgres-logs/postgres-log-store.ts";
import { WaitingSql } from "./postgres-logs/waiting-sql.ts";
import { showRecords } from "./shown-records.ts";
import { showDetail } from "./shown-requests.ts";

type Append = NumberedRequest & { readonly op: "append" };

/** The most bytes of bodies, as they came, in one transaction: one full batch, or many small ones. */
const groupBytesMax = 2 ** 20;
const groupMax = 64;

/** Serves requests, and ends when the main thread asks for it. */
export function serveLogs(init: LogThreadInit, port: MessagePort): void {
  if (init.role === "count") serveAnalytics(init, init.analytics, port);
  else if (init.role === "write") serveStore(init, port);
  else serveArchive(daysOf(init), port);
}

function daysOf({ directory, database }: LogThreadInit, sql = sqlOf(database)): LogDays {
  const files = new OpenDays(directory);
  return sql === undefined ? files : new PostgresDays(sql, files);
}

function sqlOf(database: LogThreadInit["database"]): WaitingSql | undefined {
  return database === undefined ? undefined : new WaitingSql(database);
}

function writerOf(
  { directory, database }: LogThreadInit,
  broken: (path: string, error: unknown) => void,
): LogWriter {
  if (database === undefined) return new LogStore(directory, broken);
  const where = logPlaceText(database.database);
  return new PostgresLogStore(new WaitingSql(database), directory, where, broken);
}

function serveStore(init: LogThreadInit, port: MessagePort): void {
  const say = (answer: LogAnswer): void => port.postMessage(answer);
  const store = writerOf(init, (path, error) =>
    say({ no: 0, broken: path, message: messageOf(error) }),
  );
  port.on("message", (first: NumberedRequest) => {
    let request: NumberedRequest | undefined = first;
    while (request !== undefined) {
      if (request.op !== "append") {
        perform(port, request, (asked) => performOnStore(store, asked));
        return;
      }
      const group = [request];
      request = fillGroup(port, group);
      appendGroup(store, group, say);
    }
  });
}

/** Fills the group and returns the request behind it that does not belong to it. */
function fillGroup(port: MessagePort, group: Append[]): NumberedRequest | undefined {
  let bytes = group[0]?.request.body.byteLength ?? 0;
  while (bytes < groupBytesMax && group.length < groupMax) {
    // log-worker.ts sent it, as everything that comes here.
    const waiting: { message: NumberedRequest } | undefined = receiveMessageOnPort(port);
    if (waiting?.message.op !== "append") return waiting?.message;
    group.push(waiting.message);
    bytes += waiting.message.request.body.byteLength;
  }
  return undefined;
}

/**
 * Appends a group. A group that fails is tried one by one: a batch that cannot be stored must not hold up
 * those of others.
 */
function appendGroup(
  store: LogWriter,
  group: readonly Append[],
  say: (answer: LogAnswer) => void,
): void {
  try {
    const outcomes = store.append(group.map(({ request }) => request));
    for (const [at, result] of outcomes.entries())
      say({ no: group[at]?.no ?? 0, ok: true, result });
  } catch (error) {
    if (group.length === 1) say({ no: group[0]?.no ?? 0, ok: false, message: messageOf(error) });
    else for (const one of group) appendGroup(store, [one], say);
  }
}

function performOnStore(store: LogWriter, request: LogRequest): LogResult {
  switch (request.op) {
    case "append":
      return store.append([request.request])[0] ?? null;
    case "retain":
      return store.retain(request.retention, request.nowMs, request.folded);
    case "setAside":
      store.setAside(request.day, new Error(request.message));
      return null;
    case "tryToWrite":
      store.tryToWrite(request.nowMs);
      return null;
    case "stats":
      return store.stats();
    case "close":
      store[Symbol.dispose]();
      return null;
    default:
      throw new TypeError(`the writing thread does not ${request.op}`);
  }
}

function serveArchive(days: LogDays, port: MessagePort): void {
  const archive = new LogArchive(days);
  port.on("message", (request: NumberedRequest) =>
    perform(port, request, (asked) => performOnArchive(archive, asked)),
  );
}

function performOnArchive(archive: LogArchive, request: LogRequest): LogResult {
  switch (request.op) {
    case "read":
      return readShown(archive, request.request);
    case "search":
      return archive.search(request.request);
    case "record":
      return readDetail(archive, request.request);
    case "forget":
      archive.forget(request.days);
      return null;
    case "canaries":
      return archive.canaries();
    case "losses":
      return archive.losses(request.days);
    case "close":
      archive[Symbol.dispose]();
      return null;
    default:
      throw new TypeError(`the reading thread does not ${request.op}`);
  }
}

function serveAnalytics(init: LogThreadInit, place: AnalyticsPlace, port: MessagePort): void {
  const say = (answer: LogAnswer): void => port.postMessage(answer);
  const sql = sqlOf(init.database);
  const analytics = new AnalyticsStore(
    daysOf(init, sql),
    place,
    (path, error) => say({ no: 0, broken: path, message: messageOf(error) }),
    sql === undefined ? undefined : new PostgresKeptNumbers(sql),
  );
  port.on("message", (request: NumberedRequest) =>
    perform(port, request, (asked) => performOnAnalytics(analytics, asked)),
  );
}

function performOnAnalytics(analytics: AnalyticsStore, request: LogRequest): LogResult {
  switch (request.op) {
    case "fold":
      return analytics.fold(request.nowMs);
    case "numbers":
      return analytics.answer(request.query);
    case "folded":
      return analytics.done(request.nowMs);
    case "numbersBytes":
      return analytics.bytes();
    case "forget":
      analytics.close(request.days);
      return null;
    case "close":
      analytics[Symbol.dispose]();
      return null;
    default:
      throw new TypeError(`the counting thread does not ${request.op}`);
  }
}

function readShown(archive: LogArchive, request: ReadRequest): ShownPage | BrokenDay {
  const page = archive.read(request);
  if (page.kind === "broken") return page;
  return { kind: "page", logs: showRecords(page.lines, request.siteId), next: page.next };
}

function readDetail(
  archive: LogArchive,
  { place, domain, siteIds }: RecordRequest,
): LogResults["record"] {
  const found = archive.record(place, domain, siteIds);
  if (found === undefined) return { kind: "record", text: undefined };
  if ("kind" in found) return found;
  const detail = showDetail(found.record, formatPosition(place), found.siteId);
  return { kind: "record", text: JSON.stringify(detail) };
}

function perform(
  port: MessagePort,
  request: NumberedRequest,
  action: (request: LogRequest) => LogResult,
): void {
  const { no } = request;
  const say = (answer: LogAnswer): void => port.postMessage(answer);
  try {
    say({ no, ok: true, result: action(request) });
  } catch (error) {
    say({ no, ok: false, message: messageOf(error) });
  }
  if (request.op === "close") port.close();
}
