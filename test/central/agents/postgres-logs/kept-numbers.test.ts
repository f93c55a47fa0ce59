// Numbers of days whose request logs are gone: a central that is new, or was away when they went, has them as the others have.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { analyticsBy } from "../../../../src/wire/customer/analytics.ts";
import {
  AnalyticsRig,
  analyticsDomain,
  firstDayMs,
  type Line,
} from "../../../support/analytics-rig.ts";
import { logsOnPostgres, testLogDatabase } from "../../../support/any-logs.ts";
import { postgresBin, PostgresServer } from "../../../support/postgres-server.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const bin = postgresBin();
const dayMs = 86_400_000;
const keepNothing = { ageMs: 0, bytesMax: 1e12 };

function some(count: number, more: Line = {}): readonly Line[] {
  return Array.from({ length: count }, (_, at) => ({
    bytes_sent: at + 1,
    uri_path: `/p${at % 7}`,
    response_status: at % 5 === 0 ? 404 : 200,
    ...more,
  }));
}

describe.skipIf(bin === undefined)("numbers of days that are gone", { timeout: 240_000 }, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start(bin ?? "");
    logsOnPostgres({ bin: bin ?? "", server });
  }, 120_000);
  afterAll(async () => server[Symbol.asyncDispose](), 60_000);

  /** Two days, with late records of the first in the second, and of another site; the third is written. */
  function twoDays(rig: AnalyticsRig): void {
    rig.send(some(10));
    rig.send([{ gap: { count: 3, reason: "spool" } }], 2);
    rig.nowMs += dayMs;
    rig.send([...some(5), ...some(4, { when: firstDayMs / 1e3 + 60 })]);
    rig.nowMs += dayMs;
    rig.send(some(3));
  }

  const allOf = (rig: AnalyticsRig): readonly unknown[] =>
    [undefined, ...analyticsBy.filter((by) => by !== "top_addresses")].flatMap((by) =>
      (["hour", "day"] as const).map((step) => {
        const sinceDays = step === "hour" ? 6 : 80;
        return rig.ask({ by, step, since: rig.nowMs / 1e3 - sinceDays * 86_400 });
      }),
    );

  function scene() {
    const stack = new DisposableStack();
    const dir = stack.use(tempDir()).path;
    mkdirSync(join(dir, "logs"));
    const one = stack.use(new AnalyticsRig(dir));
    const another = (name: string): AnalyticsRig => {
      const rig = stack.use(new AnalyticsRig(dir, name));
      rig.nowMs = one.nowMs;
      return rig;
    };
    const rows = async (text: string): Promise<unknown[]> =>
      server.run(testLogDatabase(one.logs)?.database.database ?? "", text);
    return { one, another, rows, [Symbol.dispose]: () => stack.dispose() };
  }

  test("one that is new, and one that was away in the middle of a day, answer as the one that was there", () => {
    using all = scene();
    const { one } = all;
    one.send(some(6));
    const away = all.another("away.db");
    away.fold(); // Half of the first day, and nothing more.
    away.restart();
    twoDays(one);
    const done = one.fold();
    expect(one.store.retain(keepNothing, one.nowMs + 3 * dayMs, done)).toEqual(done);
    expect(done).toHaveLength(2);
    one.fold();
    const known = allOf(one);
    expect(one.ask().totals.requests).toBe(28);
    for (const name of ["new.db", "away.db"]) {
      const rig = name === "new.db" ? all.another(name) : away;
      rig.nowMs = one.nowMs;
      expect(rig.ask().complete).toBe(false); // It does not say that this is all.
      rig.fold();
      expect([name, allOf(rig)]).toEqual([name, known]);
      expect(rig.ask().complete).toBe(true);
    }
  });

  test("a day is kept once, whoever comes first, with no address in it", async () => {
    using all = scene();
    const { one } = all;
    twoDays(one);
    const other = all.another("other.db");
    expect(other.fold()).toEqual(one.fold());
    const [row] = await all.rows(
      "SELECT count(*)::int AS days, (SELECT count(*)::int FROM kept_number WHERE kind = 'address') AS addresses FROM kept_day",
    );
    expect(row).toEqual({ days: 2, addresses: 0 });
    const kept =
      "SELECT day, fineness, kind, site_id, domain, at, encode(bytes, 'hex') FROM kept_number ORDER BY 1, 2, 3, 4, 5, 6";
    const before = await all.rows(kept);
    expect(before.length).toBeGreaterThan(10);
    other.restart();
    other.fold();
    expect(await all.rows(kept)).toEqual(before);
  });

  test("what nobody may ask for any more goes, the finest first", async () => {
    using all = scene();
    const { one } = all;
    twoDays(one);
    one.fold();
    const finenesses = async (): Promise<unknown> =>
      all.rows(
        "SELECT DISTINCT fineness::int, kind <> '' AS is_top FROM kept_number ORDER BY 1, 2",
      );
    const left = [
      { afterDays: 0, found: 5 },
      { afterDays: 4, found: 4 },
      { afterDays: 20, found: 3 },
      { afterDays: 70, found: 2 },
      { afterDays: 110, found: 1 },
      { afterDays: 810, found: 0 },
    ];
    const begun = one.nowMs;
    for (const { afterDays, found } of left) {
      one.nowMs = begun + afterDays * dayMs;
      one.fold();
      expect([afterDays, await finenesses()]).toEqual([
        afterDays,
        expect.objectContaining({ length: found }),
      ]);
    }
    expect(await all.rows("SELECT FROM kept_day")).toEqual([]);
  });

  test("the most frequent keys of the last moments are in an answer that nothing was folded before", () => {
    using all = scene();
    all.one.send(some(14));
    const { tops, totals } = all.one.ask({ by: "top_paths" });
    expect([totals.requests, tops?.reduce((sum, { requests }) => sum + requests, 0)]).toEqual([
      14, 14,
    ]);
    expect(all.one.ask({ by: "top_paths" }).domain).toBe(analyticsDomain);
  });
});
