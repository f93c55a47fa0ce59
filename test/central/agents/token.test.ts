// How an agent becomes known, and every way in which it does not.

import { expect, test } from "vitest";
import { againMs } from "../../../src/central/agents/rotated-secrets.ts";
import { tokenLifetimeS } from "../../../src/central/agents/token-route.ts";
import { secretContext } from "../../../src/central/store/journal/site-secret.ts";
import { name16, sealer, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { askToken, connectAgent } from "../../support/fake-agent.ts";

const other = "ffffffffffffffffffffffffffffffff";

async function codeOf(answer: Response): Promise<unknown> {
  return { status: answer.status, code: ((await answer.json()) as { code?: string }).code };
}

test("a token is issued, kept as a digest only, and expires", async () => {
  await using side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  const agent = await connectAgent(side.url, name16, secret16);
  expect(agent.token).toMatchObject({
    token_type: "Bearer",
    expires_in: 3600,
    deployment_site_id: siteId,
    epoch: side.agentStore.epoch,
  });
  const rows = await side.store.selectFrom("agent_tokens").selectAll().execute();
  expect(rows).toHaveLength(1);
  expect(JSON.stringify(rows)).not.toContain(agent.token.access_token);
  expect((await agent.call("/snapshot")).status).toBe(200);

  side.clock.ms += tokenLifetimeS * 1_000;
  const late = await agent.call("/snapshot");
  expect(late.headers.get("www-authenticate")).toContain("Bearer");
  expect(await codeOf(late)).toEqual({ status: 401, code: "expired_token" });
});

test("each refusal has its own code", async () => {
  await using side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  const ask = async (name: string, secret: string, headers = {}) =>
    codeOf(await askToken(side.url, name, secret, headers));
  const at = (skewMs: number) => ({ date: new Date(side.clock.ms + skewMs).toUTCString() });

  expect(await ask("0000000000000000", secret16)).toEqual({ status: 401, code: "unknown_name" });
  expect(await ask("nonsense", secret16)).toEqual({ status: 401, code: "unknown_name" });
  expect(await ask(name16, other)).toEqual({ status: 401, code: "wrong_secret" });
  expect(await ask(name16, "")).toEqual({ status: 401, code: "wrong_secret" });
  expect(await ask(name16, secret16, at(-301_000))).toEqual({ status: 401, code: "clock_skew" });
  expect(await ask(name16, secret16, at(301_000))).toEqual({ status: 401, code: "clock_skew" });
  expect(await ask(name16, secret16, at(299_000))).toMatchObject({ status: 200 });

  const wrongGrant = await fetch(`${side.url}/token`, {
    method: "POST",
    body: "grant_type=password",
  });
  expect(await codeOf(wrongGrant)).toEqual({ status: 400, code: "invalid" });

  await side.store
    .updateTable("deployment_sites")
    .set({ when_deleted: side.clock.now().toISOString() })
    .where("id", "=", siteId)
    .execute();
  expect(await ask(name16, other)).toEqual({ status: 401, code: "wrong_secret" });
  // A clock that is off must not hide that the site is gone.
  expect(await ask(name16, secret16, at(-301_000))).toEqual({ status: 401, code: "site_deleted" });
});

/** A site whose secret was rotated: `other` is the new one. */
async function seedRotated(
  { store }: Awaited<ReturnType<typeof startAgentSide>>,
  until: string,
): Promise<void> {
  const { siteId } = await seedSite(store);
  const [current, before] = [other, secret16].map((one) => sealer.seal(one, secretContext(name16)));
  await store
    .updateTable("deployment_sites")
    .set({ secret_sealed: current ?? "" })
    .execute();
  await store
    .insertInto("old_secrets")
    .values({ deployment_site_id: siteId, secret_sealed: before ?? "", until })
    .execute();
}

test("the old secret is accepted within its grace", async () => {
  await using side = await startAgentSide();
  await seedRotated(side, new Date(side.clock.ms + 60_000).toISOString());
  expect((await askToken(side.url, name16, other)).status).toBe(200);
  expect((await askToken(side.url, name16, secret16)).status).toBe(200);
  side.clock.ms += 60_000;
  expect((await askToken(side.url, name16, secret16)).status).toBe(401);
  expect((await askToken(side.url, name16, other)).status).toBe(200);
});

test("a host that goes on with the old secret is warned of, until it has the new one", async () => {
  await using side = await startAgentSide();
  const graceEnds = new Date(side.clock.ms + 86_400_000).toISOString();
  await seedRotated(side, graceEnds);
  const signIn = async (secret: string) => {
    expect((await askToken(side.url, name16, secret)).status).toBe(200);
    return side.health.list().map(({ code, text }) => `${code}: ${text}`);
  };
  expect(await signIn(secret16)).toEqual([]);
  side.clock.ms += againMs;
  expect(await signIn(secret16)).toEqual([
    `rotated_secret_used: a host of ${name16} at 192.0.2.1 signs in with the secret16 before the rotation; from ${graceEnds} on it is refused`,
  ]);
  expect(await signIn(other)).toEqual([]);
});

test("failures of a name are limited, and do not shut out the agent that proved its secret", async () => {
  await using side = await startAgentSide();
  await seedSite(side.store);
  const from = (address: string) => ({ "x-test-address": address });
  expect((await askToken(side.url, name16, secret16, from("192.0.2.9"))).status).toBe(200);
  const statuses: number[] = [];
  for (let no = 0; no < 22; no++)
    statuses.push((await askToken(side.url, name16, other, from(`198.51.100.${no}`))).status);
  expect(statuses.filter((status) => status === 401)).toHaveLength(20);
  const refused = await askToken(side.url, name16, secret16, from("198.51.100.99"));
  expect(refused.headers.get("retry-after")).toBe("6");
  expect(await codeOf(refused)).toEqual({ status: 429, code: "too_many" });
  expect((await askToken(side.url, name16, secret16, from("192.0.2.9"))).status).toBe(200);
  side.clock.ms += 6_000;
  expect((await askToken(side.url, name16, secret16, from("198.51.100.99"))).status).toBe(200);
});

test("attempts of one address are limited", async () => {
  await using side = await startAgentSide();
  await seedSite(side.store);
  const statuses = new Map<number, number>();
  for (let no = 0; no < 302; no++) {
    const { status } = await fetch(`${side.url}/token`, { method: "POST" });
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  expect(Object.fromEntries(statuses)).toEqual({ 400: 300, 429: 2 });
});

test("everything but the token needs a token", async () => {
  await using side = await startAgentSide();
  await seedSite(side.store);
  for (const [method, path] of [
    ["GET", "/journal"],
    ["GET", "/snapshot"],
    ["GET", "/bot-sets/www.example.test/bad"],
    ["GET", `/blobs/${"0".repeat(64)}`],
    ["PUT", `/blobs/${"0".repeat(64)}`],
    ["POST", "/blobs/missing"],
    ["POST", "/receipts"],
    ["POST", "/reports"],
    ["POST", "/request-logs"],
    ["GET", "/nothing"],
  ] as const) {
    const headers = { authorization: `Bearer ${"A".repeat(43)}` };
    expect(await codeOf(await fetch(side.url + path, { method, headers }))).toEqual({
      status: 401,
      code: "expired_token",
    });
  }
});

test("unknown paths and methods are told apart", async () => {
  await using side = await startAgentSide();
  await seedSite(side.store);
  const agent = await connectAgent(side.url, name16, secret16);
  expect((await agent.call("/nothing")).status).toBe(404);
  const wrong = await agent.call("/snapshot", { method: "POST", body: "{}" });
  expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "GET"]);
});

test("a fleet behind one address gets its tokens; one name gets only so many at once", async () => {
  await using side = await startAgentSide();
  await seedSite(side.store);
  const names = Array.from({ length: 7 }, (_, no) => `00112233445566b${no}`);
  for (const name of names) await seedSite(side.store, name);
  const statuses: number[] = [];
  for (let no = 0; no < 350; no++)
    statuses.push((await askToken(side.url, names[no % names.length] ?? "", secret16)).status);
  expect(new Set(statuses)).toEqual(new Set([200]));
  for (let no = 0; no < 60; no++) await askToken(side.url, name16, secret16);
  const refused = await askToken(side.url, name16, secret16);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(await codeOf(refused)).toEqual({ status: 429, code: "too_many" });
});
