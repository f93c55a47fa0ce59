// `/unreviewed-bots/`: by domain, with the policy sentence; each customer sees its own.

import { afterAll, beforeAll, expect, test } from "vitest";
import { policySentence } from "../../../src/central/api/unreviewed-bots.ts";
import { createCustomerClient } from "../../../src/client/customer-client.ts";
import { member, openApi, type Api } from "./api-harness.ts";

let api: Api;
let [owner, stranger] = ["", ""];
let domainId = 0;
const name = "www.example.com";

beforeAll(async () => {
  api = await openApi();
  [owner, stranger] = [await api.trial("owner"), await api.trial("stranger")];
  const post = async (path: string, body: unknown, token = owner) =>
    (await api.call("POST", path, { token, body })).body;
  domainId = Number(member(await post("/domain/", { name }), "id"));
  await post("/domain/", { name: "quiet.example.com" });
  const other = Number(member(await post("/domain/", { name }, stranger), "id"));
  const rows = [
    [domainId, "2031-05-06", "curl", "A tool", 3],
    [domainId, "2031-05-05", "curl", "A tool", 4],
    [domainId, "2031-05-06", "Own", null, 9],
    [domainId, "2031-04-06", "JustOutside", null, 100],
    [domainId, "2031-04-07", "JustInside", null, 1],
    [other, "2031-05-06", "Theirs", null, 5],
  ] as const;
  await api.store
    .insertInto("unreviewed_bots")
    .values(
      rows.map(([domain_id, day, bot, description, requests]) => {
        return { domain_id, day, name: bot, description, requests };
      }),
    )
    .execute();
});
afterAll(async () => api[Symbol.asyncDispose]());

test("domains in order, bots of 30 days summed, the most frequent first", async () => {
  const { status, body } = await api.call("GET", "/unreviewed-bots/", { token: owner });
  expect(status).toBe(200);
  expect(body).toEqual([
    {
      id: domainId,
      domain_name: name,
      domain_policy: "Unreviewed bots can not access the domain (by default: no policy is set).",
      bots: [
        { name: "Own", description: null, requests: 9 },
        { name: "curl", description: "A tool", requests: 7 },
        { name: "JustInside", description: null, requests: 1 },
      ],
    },
    {
      id: expect.any(Number),
      domain_name: "quiet.example.com",
      domain_policy: expect.stringMatching(/can not access/),
      bots: [],
    },
  ]);
  const paged = await api.call("GET", "/unreviewed-bots/?limit=1", { token: owner });
  expect(paged.body).toMatchObject([{ domain_name: name }]);
  expect(paged.headers["link"]).toMatch(/rel="?next/);
});

test("another customer sees its own domain of that name only; nobody without a token sees any", async () => {
  const { body } = await api.call("GET", "/unreviewed-bots/", { token: stranger });
  expect(body).toMatchObject([{ domain_name: name, bots: [{ name: "Theirs", requests: 5 }] }]);
  expect(JSON.stringify(body)).not.toMatch(/curl|Own|quiet/);
  expect((await api.call("GET", "/unreviewed-bots/")).status).toBe(401);
});

test("the sentence follows the policy", async () => {
  const sentence = async () => {
    const baseUrl = `http://127.0.0.1:${api.port}`;
    await using client = createCustomerClient({ baseUrl, token: owner });
    return (await client.unreviewedBots())[0]?.domain_policy;
  };
  const set = async (body: unknown) =>
    expect((await api.call("POST", "/bot-access-policy/", { token: owner, body })).status).toBe(
      200,
    );
  await set({ general_policy: { unknown_bots_can_access: true } });
  expect(await sentence()).toBe("Unreviewed bots can access the domain (general policy).");
  const sub = { name: "img.www.example.com" };
  await api.call("PUT", `/domain/${name}/`, { token: owner, body: { sub_domain: sub } });
  const no = { unknown_bots_can_access: "False" };
  await set({ per_domain_policy: [{ domain: sub.name, policy: no }] });
  expect(await sentence()).toBe(
    "Unreviewed bots can access the domain (general policy); they can not access img.www.example.com.",
  );
  const feeds = { ...no, unknown_feeds_can_access: true };
  await set({ per_domain_policy: [{ domain: name, policy: feeds }] });
  expect(await sentence()).toBe(
    "Unreviewed bots can not access the domain (policy of the domain); feed readers can.",
  );
  await set({ per_domain_policy: [{ domain: name, policy: no }] });
  expect(await sentence()).toBe(
    "Unreviewed bots can not access the domain (policy of the domain).",
  );
});

test.each([
  [
    "a class",
    false,
    { feed: true },
    [],
    "can not access the domain (general policy); feed readers can.",
  ],
  [
    "two classes",
    true,
    { crawler: false, library: false, feed: true },
    [],
    "can access the domain (general policy); crawlers, and libraries and tools can not.",
  ],
  [
    "a class that is as other bots",
    true,
    { feed: true },
    [],
    "can access the domain (general policy).",
  ],
  [
    "a sub-domain without that class",
    false,
    { feed: true },
    [{ name: "a.b", own: false, classes: {} }],
    "can not access the domain (general policy); feed readers can; unreviewed bots can not access a.b.",
  ],
  [
    "sub-domains with and without a class",
    false,
    {},
    [
      { name: "a.b", own: true, classes: {} },
      { name: "c.b", own: false, classes: { library: true } },
      { name: "d.b", own: false, classes: { library: false } },
    ],
    "can not access the domain (general policy); unreviewed bots can access a.b; unreviewed bots can not access c.b; libraries and tools can there.",
  ],
  [
    "sub-domains by what holds there",
    true,
    { crawler: false, feed: false },
    [
      { name: "a.b", own: false, classes: { crawler: true, feed: true } },
      { name: "c.b", own: true, classes: { library: false } },
      { name: "d.b", own: true, classes: { library: false, feed: true } },
      { name: "e.b", own: true, classes: {} },
    ],
    "can access the domain (general policy); crawlers and feed readers can not; unreviewed bots can access e.b; unreviewed bots can access c.b, d.b; libraries and tools can not there; unreviewed bots can not access a.b; crawlers and feed readers can there.",
  ],
  [
    "all classes, each let in",
    false,
    { crawler: true, feed: true, library: true },
    [],
    "can access the domain (general policy, class by class).",
  ],
  [
    "all classes, each refused, and sub-domains where all are let in or none",
    true,
    { crawler: false, feed: false, library: false },
    [
      { name: "a.b", own: false, classes: { crawler: true, feed: true, library: true } },
      { name: "c.b", own: false, classes: {} },
    ],
    "can not access the domain (general policy, class by class); they can access a.b.",
  ],
  [
    "a sub-domain of which the same is said",
    false,
    { feed: true },
    [{ name: "a.b", own: false, classes: { feed: true } }],
    "can not access the domain (general policy); feed readers can.",
  ],
] as const)("the sentence says classes: %s", (_what, general, classes, subDomains, said) => {
  expect(policySentence({ access: { own: null, general }, classes, subDomains })).toBe(
    `Unreviewed bots ${said}`,
  );
});

test("many sub-domains that differ are not all named", () => {
  const subDomains = Array.from({ length: 12 }, (_, no) => ({
    name: `${no}.a`,
    own: true,
    classes: {},
  }));
  const said = policySentence({ access: { own: null, general: false }, classes: {}, subDomains });
  expect(said).toMatch(/they can access 0\.a, .*9\.a, 2 more sub-domains\.$/);
});

test("more names than are shown: the least frequent are summed in other", async () => {
  const names = Array.from({ length: 1_100 }, (_, no) => ({
    domain_id: domainId,
    day: "2031-05-06",
    name: `made-up-${String(no).padStart(4, "0")}`,
    description: null,
    requests: 2,
  }));
  await api.store.insertInto("unreviewed_bots").values(names).execute();
  const { body } = await api.call("GET", "/unreviewed-bots/", { token: owner });
  const [first] = body as { bots: { name: string; requests: number }[] }[];
  expect(first?.bots.length).toBe(1_001);
  expect(first?.bots.at(-1)).toMatchObject({ name: "other" });
  expect(first?.bots.reduce((sum, { requests }) => sum + requests, 0)).toBe(2_217);
});
