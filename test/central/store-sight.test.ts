// The warning of a store that cannot be used: from either way of looking, until both work. What is logged of it: a line when it goes, and one when it is back.

import { expect, test } from "vitest";
import { Health } from "../../src/base/health.ts";
import { AccelError } from "../../src/core/faults.ts";
import pino from "pino";
import { quietLog, StoreAbsence } from "../../src/central/store-absence.ts";
import { failureFacts } from "../../src/central/store/engine/postgres-faults.ts";
import { StoreSight } from "../../src/central/store-sight.ts";

const former = new AccelError("STORE_UNREACHABLE", "db is a former primary", {
  hint: "Shut it off.",
});

function scene() {
  const health = new Health(() => new Date("2030-01-01T00:00:00Z"));
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    { level: "info" },
    { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const clock = { ms: 0 };
  const absence = new StoreAbsence({ log, where: "db", monotonicMs: () => clock.ms });
  const sight = new StoreSight({ health, absence, where: "db" });
  const told = () => health.told().map(({ code, text }) => ({ code, text }));
  const logged = () =>
    lines.splice(0).map(({ level: _l, time: _t, pid: _p, hostname: _h, ...rest }) => rest);
  return { sight, health, told, log, quiet: quietLog(log, absence), clock, logged };
}

test("the pool is refused while the connection that holds the store is well", () => {
  const { sight, told } = scene();
  sight.poolAsked(former);
  expect(told()).toEqual([{ code: "store_unreachable", text: "db is a former primary" }]);
  sight.holdBack();
  expect(told()).toHaveLength(1);
  sight.poolAsked(undefined);
  expect(told()).toEqual([]);
});

test("the warning stays until both work, and says once that the store does not answer", () => {
  const { sight, told } = scene();
  sight.holdLost(new Error("read ECONNRESET"));
  expect(told()).toMatchObject([{ text: "the store db does not answer: read ECONNRESET" }]);
  const gone = "the store db does not answer: connect ECONNREFUSED";
  sight.holdLost(new AccelError("STORE_UNREACHABLE", gone));
  expect(told()).toMatchObject([{ text: gone }]);
  sight.poolAsked(former);
  sight.holdBack();
  expect(told()).toHaveLength(1);
  sight.poolAsked(undefined);
  expect(told()).toEqual([]);
});

test("a central that alone has no way to the store is warned of once, with why, and told one thing to do", () => {
  const { sight, health } = scene();
  const alone = "this central alone has no way to the store: another one works on it";
  sight.holdLost(new AccelError("STORE_UNREACHABLE", "the store db does not answer: cut"));
  const [before] = health.told();
  sight.alone(true);
  sight.holdLost(new Error("timeout expired"));
  const told = health.told();
  expect(told).toHaveLength(1);
  expect(told[0]?.text).toContain(alone);
  expect(told[0]?.text).toMatch(/: the store db does not answer: timeout expired$/);
  expect(told[0]?.hint).toMatch(/^Look at `store.url` and the network of this host/);
  expect(told[0]?.since).toBe(before?.since);
  sight.alone(false);
  expect(health.told()).toMatchObject([{ text: "the store db does not answer: timeout expired" }]);
  sight.alone(true);
  sight.holdBack();
  expect(health.told()[0]?.text).toMatch(/leads to others$/);
  sight.alone(false);
  expect(health.told()).toEqual([]);
});

test("an overload of the pool is no absence", () => {
  const { sight, told } = scene();
  sight.poolAsked(new AccelError("BUSY", "the store db is overloaded"));
  expect(told()).toEqual([]);
});

const awayError = (text = "the store db does not answer: read ECONNRESET") =>
  new AccelError("STORE_UNREACHABLE", text);

test("however much fails while the store is away, it is one line when it goes and one when it is back", () => {
  const { sight, quiet, clock, logged } = scene();
  for (let no = 0; no < 80; no++) {
    quiet.error({ err: awayError(), no }, "steps could not be taken");
    quiet.warn({ err: awayError("the store db does not answer: ECONNREFUSED") }, "a request waits");
    clock.ms += 100;
  }
  sight.poolAsked(awayError());
  expect(logged()).toEqual([
    {
      store: "db",
      reason: "the store db does not answer: read ECONNRESET",
      msg: "the store cannot be used",
    },
  ]);
  clock.ms += 500;
  sight.poolAsked(undefined);
  expect(logged()).toEqual([
    {
      store: "db",
      away_s: 8.5,
      failed: { "steps could not be taken": 80, "a request waits": 80 },
      msg: "the store answers again",
    },
  ]);
  sight.poolAsked(undefined);
  expect(logged()).toEqual([]);
});

test("calls that failed between two looks are told, too, and another reason is another line", () => {
  const { sight, quiet, clock, logged, told } = scene();
  quiet.error({ err: awayError() }, "steps could not be taken");
  sight.poolAsked(undefined);
  expect(logged().map(({ msg }) => msg)).toEqual([
    "the store cannot be used",
    "the store answers again",
  ]);
  expect(told()).toEqual([]);
  sight.holdLost(awayError());
  clock.ms += 9_000;
  quiet.error({ err: awayError("the store db is shutting down") }, "steps could not be taken");
  sight.poolAsked(new AccelError("STORE_UNREACHABLE", "the store db starts up"));
  clock.ms += 1_000;
  sight.poolAsked(undefined);
  sight.poolAsked(former);
  sight.poolAsked(undefined);
  expect(logged().map(({ reason }) => reason)).toEqual([awayError().message, former.message]);
  sight.holdBack();
  expect(logged()).toMatchObject([
    { msg: "the store answers again", away_s: 10, failed: { "steps could not be taken": 1 } },
  ]);
});

test("that no connection is free is counted while the store is known to be away, and else written", () => {
  const { sight, quiet, clock, logged } = scene();
  const busy = new AccelError("BUSY", "no connection to the store db became free in time");
  const all = (): void => {
    quiet.error({ err: busy }, "steps could not be taken");
    quiet.warn({ ...failureFacts(busy), request_id: "r" }, "a request waits for the store");
    quiet.warn(failureFacts(new Error("a defect")), "ages are not known");
  };
  all();
  expect(logged()).toMatchObject([
    { err: { message: busy.message }, msg: "steps could not be taken" },
    { reason: busy.message, request_id: "r", msg: "a request waits for the store" },
    { reason: "a defect" },
  ]);
  sight.holdLost(new Error("PostgreSQL did not answer for 15 s"));
  for (let no = 0; no < 40; no++) all();
  clock.ms += 60_000;
  sight.holdBack();
  const failed = { "steps could not be taken": 40, "a request waits for the store": 40 };
  expect(logged().filter(({ reason }) => reason !== "a defect")).toMatchObject([
    { msg: "the store cannot be used" },
    { msg: "the store answers again", failed },
  ]);
  all();
  expect(logged()).toHaveLength(3);
});

test("all else is written as before, at the level that the log has by then", () => {
  const { log, quiet, logged } = scene();
  quiet.error({ err: new AccelError("BUSY", "the store db is overloaded") }, "overloaded");
  quiet.warn({ reason: "why" }, "a warning");
  quiet.info({ err: awayError() }, "no failure of a part");
  log.level = "error";
  quiet.warn("not at this level");
  quiet.error("a text");
  expect(logged().map(({ msg }) => msg)).toEqual([
    "overloaded",
    "a warning",
    "no failure of a part",
    "a text",
  ]);
});
