// What central forgets: each step by itself, at the start and by the hour; and the rows that go.

import { join } from "node:path";
import pino from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { startRetention } from "../../../src/central/jobs/retention.ts";
import { openStore } from "../../../src/central/store/engine/database.ts";
import {
  dropExpiredAgentTokens,
  dropIdempotencyKeys,
} from "../../../src/central/store/engine/expiry.ts";
import { dropOldNotices } from "../../../src/central/store/notices/notice-expiry.ts";
import { dropUnreviewed } from "../../../src/central/store/bots/unreviewed-counting.ts";
import { seedSite } from "../../support/agent-side.ts";
import { tempDir } from "../../support/temp-dir.ts";

const now = new Date("2030-01-15T12:00:00Z");
const hourMs = 3_600_000;

test("a step that fails is told and does not keep the others from running", async () => {
  const lines: string[] = [];
  const log = pino({ level: "error" }, { write: (line: string) => lines.push(line) });
  const asked: string[] = [];
  const step = (name: string, result: unknown) => async (at: Date) => {
    asked.push(`${name} ${at.toISOString()}`);
    if (result instanceof Error) throw result;
    return 0;
  };
  {
    await using _ = startRetention({
      dropIdempotencyKeys: step("keys", new Error("disk full")),
      dropAgentTokens: step("tokens", 0),
      dropTokens: step("ended tokens", 0),
      dropEnrolments: step("codes", 0),
      dropUnreviewed: step("bots", 0),
      dropAudit: step("audit", 0),
      dropLogs: async (at) => {
        await step("logs", 0)(at);
        return [];
      },
      now: () => now,
      log,
    });
  }
  expect(asked).toEqual(
    ["keys", "tokens", "ended tokens", "codes", "bots", "audit", "logs"].map(
      (name) => `${name} ${now.toISOString()}`,
    ),
  );
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { what: "idempotency keys", err: { message: "disk full" } },
  ]);
});

test("keys older than a day and tokens past their end go, the others stay", async () => {
  using dir = tempDir();
  await using store = await openStore(join(dir.path, "central.db"), () => now);
  const at = (ms: number): string => new Date(now.getTime() + ms).toISOString();
  const answer = { request_digest: "d", status: 201, answer_sealed: "s" };
  await store
    .insertInto("idempotency")
    .values([
      { scope: "user:1", key: "old", ...answer, when_created: at(-86_400_001) },
      { scope: "user:1", key: "new", ...answer, when_created: at(-86_400_000) },
    ])
    .execute();
  await store
    .insertInto("agent_tokens")
    .values([
      { digest: "over", deployment_site_id: 1, expires_at: at(0) },
      { digest: "good", deployment_site_id: 1, expires_at: at(1) },
    ])
    .execute();
  expect(await dropIdempotencyKeys(store, now)).toBe(1);
  expect(await dropExpiredAgentTokens(store, now)).toBe(1);
  expect(await store.selectFrom("idempotency").select("key").execute()).toEqual([{ key: "new" }]);
  expect(await store.selectFrom("agent_tokens").select("digest").execute()).toEqual([
    { digest: "good" },
  ]);
});

test("what reports tell is kept as long as something is compared with it, and what was told once for longer than any reminder", async () => {
  using dir = tempDir();
  await using store = await openStore(join(dir.path, "central.db"), () => now);
  const day = (before: number): string =>
    new Date(now.getTime() - before * 24 * hourMs).toISOString().slice(0, 10);
  const { customerId, domainId } = await seedSite(store);
  const facts = [401, 400].map((before) => ({
    customer_id: customerId,
    fact: String(before),
    when_told: day(before),
  }));
  await store.insertInto("told_facts").values(facts).execute();
  const runs = [401, 400].map((before) => ({
    kind: "daily" as const,
    period: day(before),
    covers_until: day(before),
    after_customer_id: 0,
    when_begun: day(before),
    when_done: null,
  }));
  await store.insertInto("notice_runs").values(runs).execute();
  const none = { requests: 0, hits: 0, blocked: 0, bytes: 0 };
  const traffic = [61, 60].map((before) => ({
    domain_id: domainId,
    day: day(before),
    ...none,
    origin_requests: 0,
    origin_errors: 0,
  }));
  await store.insertInto("traffic_days").values(traffic).execute();
  const images = [91, 90].map((before) => ({
    domain_id: domainId,
    day: day(before),
    made: 1,
    blocked: 1,
    when_told: null,
  }));
  await store.insertInto("image_days").values(images).execute();

  expect(await dropOldNotices(store, now, hourMs)).toBe(4);
  expect(await store.selectFrom("told_facts").select("fact").execute()).toEqual([{ fact: "400" }]);
  expect(await store.selectFrom("notice_runs").select("period").execute()).toEqual([
    { period: day(400) },
  ]);
  for (const [table, kept] of [
    ["traffic_days", 60],
    ["image_days", 90],
  ] as const)
    expect(await store.selectFrom(table).select("day").execute()).toEqual([{ day: day(kept) }]);
  expect(await dropOldNotices(store, now, hourMs)).toBe(0);
});

test("batches of counted bots are known for a week", async () => {
  using dir = tempDir();
  await using store = await openStore(join(dir.path, "central.db"), () => now);
  const { siteId } = await seedSite(store);
  const batch = (instance_id: string, ms: number) => ({
    deployment_site_id: siteId,
    instance_id,
    boot_id: "b",
    seq: 1,
    when_stored: new Date(now.getTime() - 7 * 24 * hourMs - ms).toISOString(),
  });
  await store
    .insertInto("counted_batches")
    .values([batch("old", 1), batch("known", 0)])
    .execute();
  expect(await dropUnreviewed(store, now)).toBe(1);
  expect(await store.selectFrom("counted_batches").select("instance_id").execute()).toEqual([
    { instance_id: "known" },
  ]);
});

describe("the schedule", () => {
  beforeEach(() => void vi.useFakeTimers({ now }));
  afterEach(() => void vi.useRealTimers());
  const started = (dropLogs: () => Promise<readonly string[]>): AsyncDisposable =>
    startRetention({
      dropIdempotencyKeys: async () => 0,
      dropAgentTokens: async () => 0,
      dropTokens: async () => 0,
      dropEnrolments: async () => 0,
      dropUnreviewed: async () => 0,
      dropAudit: async () => 0,
      dropLogs,
      now: () => new Date(),
      log: silentLog(),
    });

  test("runs at the start and once an hour, until it is disposed", async () => {
    let runs = 0;
    const jobs = started(async () => {
      runs++;
      return [];
    });
    await vi.advanceTimersByTimeAsync(0);
    expect(runs).toBe(1);
    await vi.advanceTimersByTimeAsync(3 * hourMs);
    expect(runs).toBe(4);
    await jobs[Symbol.asyncDispose]();
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(3 * hourMs);
    expect(runs).toBe(4);
  });

  test("disposing waits for the run under way", async () => {
    const held = Promise.withResolvers<readonly string[]>();
    const jobs = started(async () => held.promise);
    let isOver = false;
    const over = jobs[Symbol.asyncDispose]().then(() => (isOver = true));
    await vi.advanceTimersByTimeAsync(hourMs);
    expect(isOver).toBe(false);
    held.resolve([]);
    expect(await over).toBe(true);
  });
});
