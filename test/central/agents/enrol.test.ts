// Hosts exchange codes for name and secret of a deployment site: once for each use, again for ten minutes with their nonce,
// and never after a code has expired or was revoked.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createEnrolment,
  dropEnrolments,
  findEnrolment,
  listEnrolments,
  revokeEnrolment,
} from "../../../src/central/store/journal/enrolments.ts";
import { createSite, removeSite, rotateSecret } from "../../../src/central/store/journal/sites.ts";
import { siteWithSecret } from "../../../src/central/store/journal/site-secret.ts";
import { authorityDigestOf } from "../../../src/wire/enrolment.ts";
import { noteRestore } from "../../../src/central/store/engine/restores.ts";
import { startAgentSide } from "../../support/agent-side.ts";

const authority = { pem: "an authority\n", digest: authorityDigestOf("an authority\n") };
let side: Awaited<ReturnType<typeof startAgentSide>>;
beforeAll(async () => {
  side = await startAgentSide({ authority });
});
afterAll(async () => side[Symbol.asyncDispose]());

let nonces = 0;
const nonce = (): string => (++nonces).toString(16).padStart(32, "0");

const newSite = async () =>
  side.customers.transact(async (work) =>
    siteWithSecret(work, await createSite(work, { customerId: 1, userId: 1 }, [])),
  );

async function tokenStatus(site: { name16: string; secret16: string }): Promise<number> {
  const { status } = await fetch(`${side.url}/token`, {
    method: "POST",
    headers: { authorization: `Basic ${btoa(`${site.name16}:${site.secret16}`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials" }),
  });
  return status;
}

type Asked = { readonly address?: string; readonly date?: Date };
async function enrol(code: string, given: string, { address, date }: Asked = {}) {
  const answer = await fetch(`${side.url}/enrol`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      date: (date ?? side.clock.now()).toUTCString(),
      "x-test-address": address ?? "192.0.2.1",
    },
    body: JSON.stringify({ code, nonce: given }),
  });
  const body = Object(await answer.json()) as Record<string, unknown>;
  return { status: answer.status, body, retryAfter: answer.headers.get("retry-after") };
}

async function codeFor(siteId: number, uses = 1, lifetimeS = 3_600) {
  const made = await side.customers.transact(async (work) =>
    createEnrolment(work, siteId, { uses, lifetimeS, createdBy: "anna" }),
  );
  if (made === "too-many") throw new Error("too many codes");
  return { code: made.code, id: made.record.id };
}

const refusedBecause = (words: string) => ({
  status: 403,
  body: { code: "code_refused", message: `this code ${words}` },
});

test("a code gives name and secret, with which the agent signs in", async () => {
  const site = await newSite();
  const { code, id } = await codeFor(site.id);
  const { status, body } = await enrol(code, nonce(), { address: "192.0.2.77" });
  expect({ status, body }).toEqual({
    status: 200,
    body: { name16: site.name16, secret16: site.secret16, deployment_site_id: site.id },
  });
  await side.customers.transact(async (work) => {
    expect(await findEnrolment(work, site.id, id)).toMatchObject({
      state: "used",
      used: 1,
      when_last_used: side.clock.now().toISOString(),
      last_used_from: "192.0.2.77",
    });
    const lines = await work.tx
      .selectFrom("audit")
      .selectAll()
      .where("who", "=", `code ${id}`)
      .execute();
    expect(lines).toMatchObject([
      { via: "agent", action: "site join", address: "192.0.2.77", change: '{"used":1,"uses":1}' },
    ]);
    expect(JSON.stringify(lines)).not.toContain(site.secret16);
    const kept = await work.tx.selectFrom("enrolments").selectAll().execute();
    expect(JSON.stringify(kept)).not.toContain(code);
  });
});

test("the same nonce gets the same answer for ten minutes, takes no use, and tells nobody twice", async () => {
  const site = await newSite();
  const { code, id } = await codeFor(site.id, 2, 60);
  const mine = nonce();
  const first = await enrol(code, mine);
  expect(first.status).toBe(200);
  side.clock.ms += 599_000; // The code has expired meanwhile.
  expect(await enrol(code, mine)).toEqual(first);
  expect(await enrol(code, nonce())).toMatchObject(refusedBecause("has expired"));
  side.clock.ms += 2_000;
  expect(await enrol(code, mine)).toMatchObject(
    refusedBecause(
      "was exchanged by this host before; its answer is repeated for ten minutes only",
    ),
  );
  await side.customers.transact(async (work) => {
    expect(await findEnrolment(work, site.id, id)).toMatchObject({ used: 1, state: "expired" });
    const lines = await work.tx
      .selectFrom("audit")
      .select("id")
      .where("who", "=", `code ${id}`)
      .execute();
    expect(lines).toHaveLength(1);
  });
});

test("of many hosts at once as many join as the code has uses", async () => {
  const site = await newSite();
  const { code } = await codeFor(site.id, 3);
  const answers = await Promise.all(Array.from({ length: 9 }, async () => enrol(code, nonce())));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
  for (const answer of answers.filter(({ status }) => status !== 200))
    expect(answer).toMatchObject(refusedBecause("was used by as many hosts as it is for"));
});

test("a join changes no secret, and gives the one that is in force", async () => {
  const site = await newSite();
  const { code } = await codeFor(site.id, 2);
  await enrol(code, nonce());
  expect(await tokenStatus(site)).toBe(200);
  const until = new Date(side.clock.now().getTime() + 60_000).toISOString();
  await side.customers.transact(async (work) => rotateSecret(work, site.id, until));
  const { body } = await enrol(code, nonce());
  expect(body["secret16"]).not.toBe(site.secret16);
  expect(await tokenStatus({ ...site, secret16: String(body["secret16"]) })).toBe(200);
});

describe("a code is refused", () => {
  test("that nobody made, that was revoked, whose site was deleted; answers to repeat end as well", async () => {
    expect(await enrol("f".repeat(32), nonce())).toMatchObject(
      refusedBecause("is none of this central's"),
    );
    const site = await newSite();
    const [revoked, other] = [await codeFor(site.id, 2), await codeFor(site.id, 2)];
    const mine = nonce();
    expect((await enrol(revoked.code, mine)).status).toBe(200);
    await side.customers.transact(async (work) => revokeEnrolment(work, site.id, revoked.id));
    expect(await enrol(revoked.code, mine)).toMatchObject(refusedBecause("was revoked"));
    await side.customers.transact(async (work) => removeSite(work, site.id));
    expect(await enrol(other.code, nonce())).toMatchObject(
      refusedBecause("is for a deployment site that was deleted"),
    );
  });

  test("where the host's clock is wrong, before it is used", async () => {
    const site = await newSite();
    const { code, id } = await codeFor(site.id);
    const date = new Date(side.clock.now().getTime() - 3_600_000);
    const { status, body } = await enrol(code, nonce(), { date });
    expect([status, body["code"]]).toEqual([401, "clock_skew"]);
    await side.customers.transact(async (work) =>
      expect(await findEnrolment(work, site.id, id)).toMatchObject({ used: 0 }),
    );
  });

  test("and a body of another form says what is wrong with it", async () => {
    const answer = await fetch(`${side.url}/enrol`, { method: "POST", body: '{"code":"x"}' });
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { code: "invalid", message: expect.stringMatching(/nonce/) },
    ]);
    const long = await fetch(`${side.url}/enrol`, { method: "POST", body: " ".repeat(4_097) });
    expect([long.status, await long.json()]).toMatchObject([413, { code: "too_large" }]);
  });
});

test("a restore ends all codes: which of them were used since the backup is not known", async () => {
  await using restored = await startAgentSide({ authority });
  const siteId = await restored.customers.transact(async (work) =>
    createSite(work, { customerId: 1, userId: 1 }, []),
  );
  const made = await restored.customers.transact(async (work) =>
    createEnrolment(work, siteId, { createdBy: "anna" }),
  );
  if (made === "too-many") throw new Error("too many codes");
  const at = restored.clock.now().toISOString();
  await noteRestore(restored.store, {
    when_backed_up: at,
    when_restored: at,
    clear_now: false,
  });
  const answer = await fetch(`${restored.url}/enrol`, {
    method: "POST",
    body: JSON.stringify({ code: made.code, nonce: nonce() }),
  });
  expect({ status: answer.status, body: await answer.json() }).toMatchObject(
    refusedBecause("was revoked"),
  );
});

test("who guesses waits; another address and a good code do not", async () => {
  const site = await newSite();
  const { code } = await codeFor(site.id);
  for (let no = 0; no < 100; no++)
    expect((await enrol("e".repeat(32), nonce(), { address: "192.0.2.9" })).status).toBe(403);
  const waits = await enrol(code, nonce(), { address: "192.0.2.9" });
  expect([waits.status, Number(waits.retryAfter)]).toEqual([429, 10]);
  expect((await enrol(code, nonce(), { address: "192.0.2.10" })).status).toBe(200);
});

test("a site takes a hundred exchanges at once, repeated ones included; another site is not held up", async () => {
  const [site, other] = [await newSite(), await newSite()];
  const { code, id } = await codeFor(site.id, 2);
  const mine = nonce();
  for (let no = 0; no < 100; no++) expect((await enrol(code, mine)).status).toBe(200);
  expect((await enrol(code, nonce())).status).toBe(429);
  await side.customers.transact(async (work) =>
    expect(await findEnrolment(work, site.id, id)).toMatchObject({ used: 1 }),
  );
  // Nor by refused codes, whoever has them.
  const [late, third] = [await codeFor(other.id), await codeFor(other.id)];
  await side.customers.transact(async (work) => revokeEnrolment(work, other.id, late.id));
  for (let no = 0; no < 200; no++) await enrol(late.code, nonce(), { address: `198.51.100.${no}` });
  expect((await enrol(third.code, nonce())).status).toBe(200);
  // Hosts behind one address that wait for their site are not taken for somebody who guesses.
  for (let no = 0; no < 100; no++) expect((await enrol(code, nonce())).status).toBe(429);
  expect((await enrol((await codeFor(other.id)).code, nonce())).status).toBe(200);
  side.clock.ms += 1_000;
  expect((await enrol(code, nonce())).status).toBe(200);
  expect((await enrol(code, mine)).status).toBe(429);
});

test("a site has twenty open codes at most; those whose time is long over are forgotten", async () => {
  const site = await newSite();
  const made: { id: number }[] = [];
  for (let no = 0; no < 20; no++) made.push(await codeFor(site.id));
  await expect(codeFor(site.id)).rejects.toThrow("too many codes");
  await side.customers.transact(async (work) => revokeEnrolment(work, site.id, made[0]?.id ?? 0));
  await codeFor(site.id);
  const left = async (afterMs: number): Promise<number> => {
    await dropEnrolments(side.store, new Date(side.clock.ms + afterMs));
    const all = { after: 0, limit: 100 };
    return side.customers.transact(
      async (work) => (await listEnrolments(work, site.id, all)).length,
    );
  };
  const month = 30 * 86_400_000;
  expect(await left(month)).toBe(21);
  expect(await left(month + 3_601_000)).toBe(0);
});

test("the authority that hosts need to trust is given byte by byte as its digest was taken", async () => {
  const answer = await fetch(`${side.url}/ca`);
  const { ca_pem: pem } = (await answer.json()) as { ca_pem: string };
  expect(authorityDigestOf(pem)).toBe(authority.digest);
  await using without = await startAgentSide();
  expect((await fetch(`${without.url}/ca`)).status).toBe(404);
});
