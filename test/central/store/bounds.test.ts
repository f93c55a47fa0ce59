// Bounds of what others write into the store: how long an agent says that something took, how many recoveries wait, how many of their links are good.

import { expect, test } from "vitest";
import { hasLinksEnough, startRecovery } from "../../../src/central/store/people/recovery.ts";
import { name16, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { connectAgent } from "../../support/fake-agent.ts";
import { openApi } from "../api/api-harness.ts";

test("how long something took is kept as long as it may be: of a value beyond, the greatest", async () => {
  await using side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  for (let no = 0; no < 4; no++) await side.append(siteId, "domains.changed", { domains: [] });
  const agent = await connectAgent(side.url, name16, secret16);
  const most = 2 ** 31 - 1;
  const took = [0, most, most + 1, Number.MAX_SAFE_INTEGER];
  const receipts = took.map((took_ms, at) => ({
    seq: at + 1,
    phase: "applied",
    detail: {},
    took_ms,
  }));
  const body = JSON.stringify({ instance_id: "instance-1", receipts });
  expect((await agent.call("/receipts", { method: "POST", body })).status).toBe(200);
  const rows = await side.store.selectFrom("receipts").select("took_ms").orderBy("seq").execute();
  expect(rows.map(({ took_ms }) => took_ms)).toEqual([0, most, most, most]);
});

test("so many recoveries wait to be looked at, the next is told to come later", async () => {
  await using api = await openApi({ recoveriesPerAddress: 100 });
  const start = async () =>
    api.call("POST", "/tokens/start-recovery/", { body: { username: "a", email: "a@x.org" } });
  const waiting = async (): Promise<number> =>
    (await api.store.selectFrom("recovery_requests").selectAll().execute()).length;
  const row = { username: "a", email: "a@x.org", when_created: api.clock.toISOString() };
  for (let part = 0; part < 10; part++)
    await api.store
      .insertInto("recovery_requests")
      .values(Array.from({ length: part === 9 ? 499 : 500 }, () => row))
      .execute();
  expect((await start()).status).toBe(200);
  expect(await waiting()).toBe(5_000);
  expect((await start()).status).toBe(429);
  expect(await waiting()).toBe(5_000);
  await api.store.deleteFrom("recovery_requests").where("id", "=", 1).execute();
  expect((await start()).status).toBe(200);
});

test("five links of a user are good at once, and five thousand of all", async () => {
  await using api = await openApi();
  await api.trial("one");
  await api.trial("two");
  const [one = 0, two = 0] = (await api.store.selectFrom("users").select("id").execute()).map(
    ({ id }) => id,
  );
  let made = 0;
  const work = (at: Date) => ({ tx: api.store, at: at.toISOString(), randomHex });
  const randomHex = (bytes: number): string => (++made).toString(16).padStart(2 * bytes, "0");
  const enough = async (userId: number, at = api.clock): Promise<boolean> =>
    hasLinksEnough(work(at) as never, userId);
  for (let link = 0; link < 5; link++) {
    expect(await enough(one)).toBe(false);
    await startRecovery(work(api.clock) as never, one);
  }
  expect(await enough(one)).toBe(true);
  expect(await enough(two)).toBe(false);
  // A link is good for an hour.
  const later = (ms: number): Date => new Date(api.clock.getTime() + ms);
  expect(await enough(one, later(3_599_999))).toBe(true);
  expect(await enough(one, later(3_600_000))).toBe(false);
  const others = Array.from({ length: 4_995 }, (_, no) => ({
    digest: String(no).padStart(64, "x"),
    user_id: one,
    expires_at: later(3_600_000).toISOString(),
  }));
  await api.store.insertInto("recoveries").values(others.slice(1)).execute();
  expect(await enough(two)).toBe(false);
  await api.store.insertInto("recoveries").values(others.slice(0, 1)).execute();
  expect(await enough(two)).toBe(true);
});
