// Marks, removals, checks, lists and the policy: what is stored and what the agents are told.

import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { changedSetDigest, emptySetDigest } from "../../../src/core/addresses/set-digest.ts";
import { member, openApi, type Api } from "./api-harness.ts";

let api: Api;
let token: string;
let name: string;
let siteId: number;
let no = 0;
beforeAll(async () => {
  api = await openApi({ marksBurst: 200, marksPerSecond: 1 });
});
afterAll(async () => api[Symbol.asyncDispose]());
beforeEach(async () => {
  api.clock = new Date(api.clock.getTime() + 3_600_000);
  token = await api.trial(`botter${++no}`);
  name = `b${no}.example.com`;
  const site = await api.call("POST", "/deployment-site/", { token, body: {} });
  siteId = Number(member(site.body, "id"));
  await api.call("POST", "/domain/", { token, body: { name, deployment_site_id: siteId } });
  const sub_domain = { name: `static.${name}` };
  await api.call("PUT", `/domain/${name}/`, { token, body: { sub_domain } });
});

type Set = "bad" | "vip";
async function mark(set: Set, range: string, bot = "Crawler", more: object = {}) {
  const body = { attach_to_bot: bot, attach_to_domain: name, ...more };
  return api.call("POST", `/mark-as-${set}-bot/${range}/`, { token, body });
}
async function remove(set: Set, range: string, bot = "Crawler", more: object = {}) {
  const body = { remove_from_bot: bot, remove_from_domain: name, ...more };
  return api.call("POST", `/remove-ip-from-${set}-bot-list/${range}/`, { token, body });
}
async function check(set: Set, range: string) {
  const { body } = await api.call("GET", `/is-${set}-bot/${range}/`, { token });
  return body;
}
async function changes() {
  const entries = await api.journal(siteId);
  return entries.filter(({ kind }) => kind === "bots.changed").map(({ body }) => Object(body));
}

describe("marks", () => {
  test("make the bot, answer with all its elements, and are told as versions of the set", async () => {
    const first = await mark("bad", "192.0.2.1");
    expect(first).toMatchObject({
      status: 200,
      body: { id: expect.any(Number), name: "Crawler", domain: name, ip_addresses: ["192.0.2.1"] },
    });
    const second = await mark("bad", "192.0.2.128_25");
    expect(second.body).toMatchObject({ ip_addresses: ["192.0.2.1", "192.0.2.128/25"] });
    const custom = await mark("bad", "192.0.2.3_1", "Crawler", { is_custom_ip_range: "True" });
    expect(custom.body).toMatchObject({
      ip_addresses: ["192.0.2.1", "192.0.2.3", "192.0.2.4", "192.0.2.128/25"],
    });
    expect(await changes()).toMatchObject([
      { domain: name, set: "bad", from_version: 0, to_version: 1, count: 1, shrink_meant: false },
      { from_version: 1, to_version: 2, count: 2 },
      { from_version: 2, to_version: 3, count: 4, removed: [] },
    ]);
    await mark("bad", "192.0.2.1"); // It is attached already: no version.
    expect(await changes()).toHaveLength(3);
  });

  test("belong to a domain with its sub-domains, or to one sub-domain", async () => {
    await mark("vip", "192.0.2.1", "Own", { attach_to_domain: `Static.${name}` });
    await mark("vip", "192.0.2.1", "Own");
    expect((await changes()).map((change) => change["domain"])).toEqual([`static.${name}`, name]);
    const { body } = await api.call("GET", "/list-vip-bots/", { token });
    expect(body).toMatchObject([{ domain: `static.${name}` }, { domain: name }]);
  });

  test("in both lists are told, and go through", async () => {
    await mark("vip", "192.0.2.0_24", "Friend");
    const reply = await mark("bad", "192.0.2.7", "Foe");
    expect(reply).toMatchObject({
      status: 200,
      body: { also_in: [{ list: "vip", bot: "Friend", ip_address_or_range: "192.0.2.0/24" }] },
    });
  });

  test.each([
    ["an unknown domain", { attach_to_domain: "www.unknown.org" }, 404],
    ["no bot", { attach_to_bot: "" }, 400],
    ["a bot with a line feed", { attach_to_bot: "a\nb" }, 400],
    ["a flag that is none", { is_custom_ip_range: "yes" }, 400],
  ])("with %s are refused", async (_what, more, status) => {
    expect((await mark("bad", "192.0.2.1", "Crawler", more)).status).toBe(status);
    expect(await changes()).toEqual([]);
  });

  test("are limited by number of elements and by rate", async () => {
    const custom = { is_custom_ip_range: true };
    const full = await mark("bad", "10.1.0.0_9999", "Big", custom);
    expect(Object(full.body)["ip_addresses"]).toHaveLength(10_000);
    api.clock = new Date(api.clock.getTime() + 3_600_000);
    expect((await mark("bad", "192.0.2.1", "Big")).status).toBe(409);
    expect((await mark("bad", "10.1.0.5", "Big")).status).toBe(200);
    let last = 200;
    for (let n = 0; n < 200 && last === 200; n++)
      last = (await mark("bad", "10.1.0.5", "Other")).status;
    expect(last).toBe(429);
  });
});

describe("removals", () => {
  test("take away what was attached, as it was attached; the emptied bot stays", async () => {
    await mark("bad", "192.0.2.0_24");
    await mark("bad", "198.51.100.1");
    expect((await remove("bad", "192.0.2.7")).body).toMatchObject({
      status: 409,
      detail: expect.stringContaining("192.0.2.0/24"),
    });
    expect((await remove("bad", "203.0.113.1")).status).toBe(404);
    expect((await remove("bad", "192.0.2.0_24", "Nobody")).status).toBe(404);
    expect((await remove("vip", "192.0.2.0_24")).status).toBe(404);
    await remove("bad", "192.0.2.0_24");
    const emptied = await remove("bad", "198.51.100.1");
    expect(emptied).toMatchObject({ status: 200, body: { ip_addresses: [] } });
    expect((await changes()).at(-1)).toMatchObject({
      from_version: 3,
      to_version: 4,
      removed: [{ bot: "Crawler", range: "198.51.100.1" }],
      count: 0,
      digest: emptySetDigest,
      shrink_meant: true,
    });
  });
});

describe("a removal of a part", () => {
  test("names the largest element that holds it", async () => {
    for (const range of [
      "10.0.0.0_16",
      "10.0.0.0_8",
      "10.0.0.0_12",
      "192.0.3.0_25",
      "192.0.3.0_24",
    ])
      expect((await mark("bad", range)).status).toBe(200);
    expect(await remove("bad", "10.0.0.0_24")).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining("covered by 10.0.0.0/8,") },
    });
    // From before the elements into them.
    const custom = { is_custom_ip_range: "True" };
    expect(await remove("bad", "192.0.2.254_3", "Crawler", custom)).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining("covered by 192.0.3.0/24,") },
    });
  });
});

describe("checks", () => {
  test("are true for what a set of one domain covers as a whole", async () => {
    await mark("bad", "192.0.2.0_25");
    await mark("bad", "192.0.2.128_25", "Other");
    const is = (text: string, found: boolean) => ({
      is_bad_bot: found,
      ip_address_or_range: text,
      domains: found ? [name] : [],
    });
    expect(await check("bad", "192.0.2.200")).toEqual(is("192.0.2.200", true));
    expect(await check("bad", "192.0.2.0_24")).toEqual(is("192.0.2.0/24", true));
    expect(await check("bad", "192.0.3.0_23")).toMatchObject({ status: 400 });
    expect(await check("bad", "192.0.0.0_16")).toEqual(is("192.0.0.0/16", false));
    expect(await check("bad", "::1")).toEqual(is("::1", false));
    expect(await check("vip", "192.0.2.1")).toMatchObject({ is_vip_bot: false });
  });
});

test("each version is the one before and its change; count and digest are those of the elements", async () => {
  const range = fc.constantFrom("192.0.2.1", "192.0.2.2", "192.0.2.0_30", "2001:db8::1");
  const step = fc.tuple(fc.constantFrom("mark", "remove"), range, fc.constantFrom("A", "B"));
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 10 }), async (steps) => {
      api.clock = new Date(api.clock.getTime() + 3_600_000);
      name = `m${++no}.example.com`;
      await api.call("POST", "/domain/", { token, body: { name, deployment_site_id: siteId } });
      for (const [act, at, bot] of steps) await (act === "mark" ? mark : remove)("bad", at, bot);
      const held = new Map<string, { bot: string; range: string }>();
      let version = 0;
      for (const change of (await changes()).filter((one) => one["domain"] === name)) {
        expect(change["from_version"]).toBe(version);
        version = change["to_version"];
        for (const one of change["removed"]) expect(held.delete(JSON.stringify(one))).toBe(true);
        for (const one of change["added"]) {
          expect(held.has(JSON.stringify(one))).toBe(false);
          held.set(JSON.stringify(one), one);
        }
        expect(change["count"]).toBe(held.size);
        expect(change["digest"]).toBe(changedSetDigest(emptySetDigest, held.values(), []));
      }
    }),
    { numRuns: 15 },
  );
});

describe("policy", () => {
  const post = async (body: unknown) => api.call("POST", "/bot-access-policy/", { token, body });
  const told = async () =>
    (await api.journal(siteId)).findLast(({ kind }) => kind === "policy.changed")?.body;

  test("each key that is sent replaces what is stored of it; the others stay", async () => {
    const pair = (bot: string) => ({ domain: name, bot });
    const first = await post({
      allow_access: [pair("A"), pair("B")],
      general_policy: { unknown_bots_can_access: "True" },
    });
    expect(first.body).toEqual({
      allow_access: [pair("A"), pair("B")],
      general_policy: { unknown_bots_can_access: true },
    });
    const policy = { unknown_bots_can_access: false };
    await post({ per_domain_policy: [{ domain: name.toUpperCase(), policy }] });
    // A pair sent in one list leaves the other.
    await post({ deny_access: [pair("B")] });
    expect((await api.call("GET", "/bot-access-policy/", { token })).body).toEqual({
      allow_access: [pair("A")],
      deny_access: [pair("B")],
      general_policy: { unknown_bots_can_access: true },
      per_domain_policy: [{ domain: name, policy }],
    });
    expect(await told()).toMatchObject({
      domains: [{ domain: name, unknown_bots_can_access: false, allow: ["A"], deny: ["B"] }],
    });
    await post({
      allow_access: [],
      per_domain_policy: [{ domain: name, policy: { unknown_bots_can_access: null } }],
    });
    expect(await told()).toEqual({
      domains: [{ domain: name, unknown_bots_can_access: true, allow: [], deny: ["B"] }],
    });
  });

  test("by default unreviewed bots are blocked", async () => {
    expect((await api.call("GET", "/bot-access-policy/", { token })).body).toEqual({
      allow_access: [],
      deny_access: [],
      general_policy: { unknown_bots_can_access: false },
      per_domain_policy: [],
    });
    expect(await told()).toEqual({
      domains: [{ domain: name, unknown_bots_can_access: null, allow: [], deny: [] }],
    });
  });

  test.each([
    ["nothing", () => ({}), 400],
    [
      "a pair in both lists",
      () => ({
        allow_access: [{ domain: name, bot: "A" }],
        deny_access: [{ domain: name.toUpperCase(), bot: "A" }],
      }),
      400,
    ],
    ["an unknown domain", () => ({ allow_access: [{ domain: "www.un.known", bot: "A" }] }), 404],
    [
      "a domain twice",
      () => ({
        per_domain_policy: [
          { domain: name, policy: { unknown_bots_can_access: true } },
          { domain: name, policy: { unknown_bots_can_access: false } },
        ],
      }),
      400,
    ],
  ])("%s is refused and changes nothing", async (_what, body, status) => {
    const before = await api.journal(siteId);
    expect((await post(body())).status).toBe(status);
    expect(await api.journal(siteId)).toEqual(before);
  });
});
