// What a process leaves behind for the next one: with the real agent.db, and a clock that the test moves.

import { appendFileSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { RunBook } from "../../../src/agent/admin/run-book.ts";
import { openAgentDb } from "../../../src/agent/link/agent-db.ts";
import { Health } from "../../../src/base/health.ts";
import { createLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { tempDir } from "../../support/temp-dir.ts";

const startMs = Date.UTC(2026, 0, 1, 12);
const at = (seconds: number): string => new Date(startMs + seconds * 1_000).toISOString();

/** A host: its state directory outlives the processes that run on it one after the other. */
function host(directory: string) {
  let nowMs = startMs;
  const now = (): Date => new Date(nowMs);
  return {
    move: (seconds: number): void => void (nowMs = startMs + seconds * 1_000),
    /** What the unit adds when a process has ended. */
    unitSays: (text: string, seconds: number): void =>
      appendFileSync(join(directory, "last-end"), `${startMs / 1_000 + seconds} ${text}\n`),
    /** Starts a process, which serves unless it is said not to. */
    start: (invocation?: string, serves = true) => {
      const db = openAgentDb(join(directory, "agent.db"));
      const health = new Health(now);
      const registry = new Registry();
      const stop = new AbortController();
      const log = createLog("test", "fatal");
      const instruments = { health, registry, log, stop: stop.signal };
      const book = new RunBook({
        documents: db,
        stateDir: directory,
        now,
        invocation,
        ...instruments,
      });
      if (serves) book.serves();
      return {
        book,
        health,
        counted: async () => {
          const [family] = await registry.getMetricsAsJSON();
          return Object.fromEntries(
            (family?.values ?? [])
              .filter(({ value }) => value > 0)
              .map(({ labels, value }) => [labels["cause"], value]),
          );
        },
        series: async () => (await registry.getMetricsAsJSON())[0]?.values.length,
        stop: () => {
          stop.abort("SIGTERM");
          book[Symbol.dispose]();
          db[Symbol.dispose]();
        },
        /** The process dies, or fails: nobody told it to end. */
        die: () => {
          book[Symbol.dispose]();
          db[Symbol.dispose]();
        },
      };
    },
  };
}

const warnings = (health: Health) =>
  health.list().map(({ code, severity }) => `${code} ${severity}`);

test("a first start and one after a stop warn of nothing; every cause has a series from the first on", async () => {
  using dir = tempDir();
  const { start } = host(dir.path);
  const first = start();
  expect(warnings(first.health)).toEqual([]);
  expect(await first.series()).toBe(8);
  first.stop();
  const second = start();
  expect(warnings(second.health)).toEqual([]);
  expect(await second.counted()).toEqual({});
  second.stop();
});

test("an end that nobody asked for is warned of for an hour and counted for ever; the third within 15 minutes is an error", async () => {
  using dir = tempDir();
  const { move, start, unitSays } = host(dir.path);
  start("a").die();
  unitSays("a watchdog ABRT", 60);
  move(61);
  const second = start("b");
  expect(readFileSync(join(dir.path, "last-end"), "utf8")).toBe("\n");
  expect(second.health.list()).toMatchObject([
    {
      code: "unclean_end",
      severity: "warning",
      text: `the agent ended without being told to at ${at(60)}: systemd's watchdog ended it, for systemd had heard nothing from it for a minute: a thread hung, the host stood still, or the unit was masked while it ran`,
      hint: expect.stringMatching(/ `accel-agent logs backlog` says how many request records /),
    },
  ]);
  second.die();
  move(120);
  const third = start("c");
  expect(warnings(third.health)).toEqual(["unclean_end warning"]);
  third.die();
  unitSays("c exit-code 1", 180);
  move(181);
  const fourth = start("d");
  expect(warnings(fourth.health)).toEqual(["unclean_end error"]);
  move(60 + 16 * 60);
  fourth.book.note();
  expect(warnings(fourth.health)).toEqual(["unclean_end warning"]);
  move(182 + 3_600);
  fourth.book.note();
  expect(warnings(fourth.health)).toEqual([]);
  fourth.stop();
  const fifth = start("e");
  expect(await fifth.counted()).toEqual({ watchdog: 1, unknown: 1, exit: 1 });
  expect(warnings(fifth.health)).toEqual([]);
  fifth.stop();
});

test("a warning that goes on over a restart began when it began; one that is new, since the process before was seen last", () => {
  using dir = tempDir();
  const { move, start } = host(dir.path);
  const first = start();
  move(30);
  first.health.raise("disk_low", "warning", "", "");
  first.book.note();
  move(300);
  first.book.note();
  // It was there since, and dies without noting that.
  move(310);
  first.die();
  move(320);
  const second = start();
  second.health.raise("disk_low", "warning", "", "");
  second.health.raise("spool_full", "warning", "", "");
  expect(
    second.health.told().map(({ code, since, not_before: notBefore }) => [code, since, notBefore]),
  ).toEqual([
    ["unclean_end", at(320), at(300)],
    ["disk_low", at(30), at(30)],
    ["spool_full", at(320), at(300)],
  ]);
  second.stop();
});

test("behind a long pause, nobody knows what went on", () => {
  using dir = tempDir();
  const { move, start } = host(dir.path);
  const first = start();
  first.health.raise("disk_low", "warning", "", "");
  first.stop();
  move(16 * 60);
  const second = start();
  second.health.raise("disk_low", "warning", "", "");
  expect(second.health.told()).toMatchObject([{ since: at(16 * 60), not_before: null }]);
  second.stop();
});

test("of two ends one behind the other each has its own cause, also where the second came before the first was noted", async () => {
  using dir = tempDir();
  const { move, start, unitSays } = host(dir.path);
  start("a").die();
  unitSays("a signal KILL", 10);
  unitSays("b watchdog ABRT", 11);
  move(12);
  const third = start("c");
  expect(await third.counted()).toEqual({ signal: 1, watchdog: 1 });
  third.stop();
});

test("a start that fails, as where its port is taken, is told of and pages nobody", async () => {
  using dir = tempDir();
  const { move, start, unitSays } = host(dir.path);
  start("a").stop();
  for (let time = 1; time <= 40; time++) {
    move(time);
    const failing = start(`try ${time}`.replace(" ", "-"), false);
    failing.die();
    unitSays(`try-${time} exit-code 1`, time);
  }
  move(41);
  const last = start("z");
  expect(warnings(last.health)).toEqual(["unclean_end info"]);
  expect(last.health.list()).toMatchObject([
    {
      text: `the agent failed to start 40 times since ${at(1)}, at ${at(40)} for the last time: a start failed with exit status 1`,
      // It served nobody, and has cost no request records.
      hint: "`journalctl -u accel-agent` around that time says what it met, and `accel-agent diagnostics` collects what a report needs.",
    },
  ]);
  expect(await last.counted()).toEqual({ start: 40 });
  last.stop();
});

test("of more ends than are kept it is said that there were more", () => {
  using dir = tempDir();
  const { move, start, unitSays } = host(dir.path);
  start("a").stop();
  for (let time = 1; time <= 95; time++) unitSays(`t${time} exit-code 1`, time);
  move(100);
  const last = start("z");
  expect(last.health.list()[0]?.text).toMatch(/^the agent failed to start at least 90 times since/);
  last.stop();
});

test("the file of the unit keeps its block, so that an end on a full disk has room", () => {
  using dir = tempDir();
  const { start } = host(dir.path);
  start("a").stop();
  const { blocks, mode } = statSync(join(dir.path, "last-end"));
  expect(blocks).toBeGreaterThan(0);
  expect(mode & 0o777).toBe(0o600);
});

test("ends that were noted, and could not be taken out of the file, are not counted again", async () => {
  using dir = tempDir();
  const { move, start, unitSays } = host(dir.path);
  start("a").die();
  unitSays("a signal KILL", 10);
  const line = readFileSync(join(dir.path, "last-end"), "utf8");
  move(11);
  start("b").stop();
  appendFileSync(join(dir.path, "last-end"), line);
  move(12);
  const third = start("c");
  expect(await third.counted()).toEqual({ signal: 1 });
  third.stop();
});

test("a file that cannot be made stops no start", () => {
  using dir = tempDir();
  mkdirSync(join(dir.path, "last-end"));
  const { start } = host(dir.path);
  const first = start("a");
  expect(warnings(first.health)).toEqual([]);
  first.stop();
});

test("a book that cannot be written stops nobody, and is written when it can be; until then the file of the unit stays as it is", () => {
  using dir = tempDir();
  const { move, start, unitSays } = host(dir.path);
  unitSays("a signal KILL", 0);
  const file = (): string => readFileSync(join(dir.path, "last-end"), "utf8");
  const health = new Health(() => new Date(startMs));
  let kept: unknown;
  let isFull = true;
  const documents = {
    get: () => kept,
    put: (changes: Readonly<Record<string, unknown>>) => {
      if (isFull) throw new Error("database or disk is full");
      kept = changes["run"];
    },
  };
  const book = new RunBook({
    documents,
    stateDir: dir.path,
    now: () => new Date(startMs),
    invocation: undefined,
    health,
    registry: new Registry(),
    log: createLog("test", "fatal"),
    stop: new AbortController().signal,
  });
  expect(kept).toBeUndefined();
  expect(file()).toContain("a signal KILL");
  isFull = false;
  book.note();
  expect(file()).toBe("\n");
  expect(kept).toMatchObject({ run: { seen: at(0), ended: null }, warnings: [] });
  move(1);
  start().stop();
});
