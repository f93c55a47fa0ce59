// Reading along: the newest MiB, then what comes; a slow reader is told what it missed, and whoever goes leaves nothing behind.

import { MessageChannel, type MessagePort } from "node:worker_threads";
import { afterEach, expect, test } from "vitest";
import { readTail, type TailItem } from "../../../src/agent/requests/ship/tail-reader.ts";
import { TailRing } from "../../../src/agent/requests/spool/tail-ring.ts";
import type { TailQuery } from "../../../src/core/tail-query.ts";
import type { RequestRecord } from "../../../src/wire/request-log.ts";
import { requestRecord } from "../../support/request-records.ts";
import { until } from "../../support/until.ts";

const rings: TailRing[] = [];
afterEach(() => {
  for (const ring of rings.splice(0)) ring[Symbol.dispose]();
});

function newRing(): TailRing {
  const ring = new TailRing();
  rings.push(ring);
  return ring;
}

const everything: TailQuery = {
  lines: 10_000,
  follow: false,
  domain: undefined,
  status: undefined,
};

function put(ring: TailRing, ...records: readonly (RequestRecord | { canary: object })[]): void {
  const lines = records.map((record) => `${JSON.stringify(record)}\n`);
  ring.take({ count: records.length, payload: new TextEncoder().encode(lines.join("")) });
}

function portOf(ring: TailRing, follow: boolean): MessagePort {
  const { port1, port2 } = new MessageChannel();
  ring.open(port1, follow);
  return port2;
}

function read(ring: TailRing, query: TailQuery, stop: AbortSignal = new AbortController().signal) {
  const items: TailItem[] = [];
  const reading = (async () => {
    for await (const item of readTail(portOf(ring, query.follow), query, stop)) items.push(item);
  })();
  return { items, reading };
}

const ids = (items: readonly TailItem[]): readonly number[] =>
  items.flatMap((item) => ("record" in item ? [item.record.connection] : []));
const range = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at);

test("the newest lines that are there, then the end", async () => {
  const ring = newRing();
  for (const id of range(1, 20)) put(ring, requestRecord(id));
  const { items, reading } = read(ring, { ...everything, lines: 3 });
  await reading;
  expect(items[0]).toEqual({ following: false });
  expect(items.slice(1)).toEqual([18, 19, 20].map((id) => ({ record: requestRecord(id) })));
  const none = read(ring, { ...everything, lines: 0 });
  await none.reading;
  expect(none.items).toEqual([{ following: false }]);
});

test("about a MiB is kept, the oldest goes first, and a canary is no record", async () => {
  const ring = newRing();
  const large = { user_agent: "x".repeat(1_000) };
  for (const id of range(1, 3_000)) put(ring, requestRecord(id, large));
  put(ring, { canary: { at: 1 } });
  const { items, reading } = read(ring, everything);
  await reading;
  const kept = ids(items);
  expect(kept.at(-1)).toBe(3_000);
  expect(kept.length).toBeGreaterThan(600);
  expect(kept.length).toBeLessThan(1_049);
  expect(kept).toEqual(range(3_001 - kept.length, 3_000));
});

test.each<[string, Partial<TailQuery>, readonly number[]]>([
  ["of a status", { status: { least: 404, most: 404 } }, [2]],
  ["of a class", { status: { least: 400, most: 499 } }, [2, 4]],
  ["of a main domain", { domain: "a.example" }, [1, 2, 3]],
  ["of a host, whatever its port and case", { domain: "sub.a.example" }, [3]],
  ["of both", { domain: "a.example", status: { least: 200, most: 299 } }, [1, 3]],
])("only those %s", async (_, query, expected) => {
  const ring = newRing();
  const ofA = { domain: "a.example", authority: "a.example" };
  put(ring, requestRecord(1, ofA), requestRecord(2, { ...ofA, response_status: 404 }));
  put(ring, requestRecord(3, { ...ofA, authority: "SUB.a.example:8080" }));
  put(ring, requestRecord(4, { domain: null, authority: "b.example", response_status: 421 }));
  const { items, reading } = read(ring, { ...everything, ...query });
  await reading;
  expect(ids(items)).toEqual(expected);
});

test("following shows what comes, until the signal, and then nothing is sent any more", async () => {
  const ring = newRing();
  put(ring, requestRecord(1));
  const stop = new AbortController();
  const { items, reading } = read(ring, { ...everything, follow: true }, stop.signal);
  await until("what was there", () => items.length === 2);
  for (const id of range(2, 500)) put(ring, requestRecord(id));
  // Faster than it is read: some are missed, and each is told.
  const told = (): number =>
    items.reduce((sum, item) => sum + ("missed" in item ? item.missed : 0), 0);
  await until("all of them", () => ids(items).length + told() === 500);
  put(ring, requestRecord(501));
  await until("the last", () => ids(items).at(-1) === 501);
  expect(told()).toBeGreaterThan(0);
  expect(items[0]).toEqual({ following: true });
  stop.abort();
  await reading;
});

test("a reader that takes nothing is sent a few groups, and the rest as a number", async () => {
  const ring = newRing();
  const port = portOf(ring, true);
  const messages: { missed: number; payload: Uint8Array | undefined }[] = [];
  port.on("message", (message) => void messages.push(message));
  for (const id of range(1, 1_000)) put(ring, requestRecord(id));
  await until("what is on its way", () => messages.length === 8);
  for (let taken = 0; taken < 8; taken++) port.postMessage("more");
  await until("what it missed", () => messages.length === 9);
  expect(messages[8]).toMatchObject({ payload: undefined, missed: 993 });
  port.close();
});

test("more than eight do not follow, and a place is free again when one goes", async () => {
  const ring = newRing();
  const stops = range(1, 8).map(() => new AbortController());
  const readers = stops.map(({ signal }) => read(ring, { ...everything, follow: true }, signal));
  await until("eight", () => readers.every(({ items }) => items.length > 0));
  const ninth = read(ring, { ...everything, follow: true });
  await ninth.reading;
  expect(ninth.items).toEqual([{ following: false }]);
  stops[0]?.abort();
  await readers[0]?.reading;
  await until("a place", async () => {
    const stop = new AbortController();
    const next = read(ring, { ...everything, follow: true }, stop.signal);
    await until("its first item", () => next.items.length > 0);
    stop.abort();
    await next.reading;
    return JSON.stringify(next.items[0]) === '{"following":true}';
  });
  for (const stop of stops) stop.abort();
});
