// The customer's own lines of the audit trail: which they are, how they are found, and that each page is bounded.

import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSealer } from "../../../src/base/seal.ts";
import { CustomerStore } from "../../../src/central/store/engine/customer-store.ts";
import { ownAudit, recordAudit } from "../../../src/central/store/people/audit.ts";
import { at } from "../../support/api-contract.ts";
import { member, openApi, type Api, type Reply } from "./api-harness.ts";

let api: Api;
let token: string;
let customerId: number;
let store: CustomerStore;

beforeAll(async () => {
  api = await openApi({ trialsPerAddress: 1e6, trialsTotal: 1e6 });
  const trial = await api.call("POST", "/trial/", { body: { username: "ada" } });
  token = member(trial.body, "token");
  customerId = Number(member(trial.body, "customer_id"));
  const sealer = createSealer(Buffer.alloc(32, 7));
  store = new CustomerStore({ store: api.store, sealer, now: () => api.clock, randomBytes });
});
afterAll(async () => api[Symbol.asyncDispose]());

const list = async (query = "", by = token): Promise<Reply> =>
  api.call("GET", `/audit/${query}`, { token: by });
const idsOf = ({ body }: Reply): readonly unknown[] =>
  Object.values(Object(body)).map((line) => at(line, "id"));

/** All pages from one on. */
async function walk(query: string): Promise<readonly unknown[]> {
  const found: unknown[] = [];
  for (let path: string | undefined = `/audit/${query}`; path !== undefined;) {
    const page: Reply = await api.call("GET", path, { token });
    expect(page.status).toBe(200);
    found.push(...idsOf(page));
    path = /<([^>]+)>; rel="next"/.exec(String(page.headers["link"]))?.[1];
  }
  return found;
}

async function note(entry: Partial<Parameters<typeof recordAudit>[1]>): Promise<void> {
  await store.transact(async (work) =>
    recordAudit(work, {
      via: "api",
      who: "ada",
      user_id: 1,
      customer_id: customerId,
      action: "PUT /customer/:customer_id/",
      ids: {},
      change: {},
      address: "192.0.2.7",
      request_id: null,
      ...entry,
    }),
  );
}

test("a change is told with who, by which token, what and to what, without secrets", async () => {
  const made = await api.call("POST", "/deployment-site/", { token, body: { tags: "eu" } });
  const [line] = Object(await list("?limit=1")).body;
  expect(line).toEqual({
    id: expect.any(Number),
    when: api.clock.toISOString(),
    via: "api",
    username: "ada",
    token_id: expect.any(Number),
    operation: "createDeploymentSite",
    method: "POST",
    path: "/deployment-site/",
    address: "127.0.0.1",
    detail: {
      ids: {
        id: Number(member(made.body, "id")),
        name16: member(made.body, "name16"),
        by_token_id: line.token_id,
      },
      change: { tags: "eu" },
    },
  });
  expect(JSON.stringify((await list()).body)).not.toContain(member(made.body, "secret16"));
});

test("the operator and central are told as such; their accounts and addresses are not", async () => {
  await note({
    via: "operator",
    who: "root",
    user_id: null,
    action: "token revoke",
    address: null,
  });
  await note({ via: "central", who: "central", user_id: null, action: "rollout failed" });
  const [central, operator] = Object(await list("?limit=2")).body;
  expect(operator).toEqual({
    id: expect.any(Number),
    when: api.clock.toISOString(),
    via: "operator",
    username: null,
    token_id: null,
    operation: "token revoke",
    detail: { ids: {}, change: {} },
  });
  expect(central).toMatchObject({ via: "central", username: null, operation: "rollout failed" });
  expect(JSON.stringify((await list()).body)).not.toContain("root");
});

test("another customer's lines are not there", async () => {
  const other = await api.trial("eve");
  const own = await list("", other);
  expect(Object.values(Object(own.body)).map((line) => at(line, "operation"))).toEqual([
    "startTrial",
  ]);
  const wrong = Number(idsOf(own)[0]);
  expect(await walk("")).not.toContain(wrong);
});

test("lines are found by time, user and operation, and walked newest first, each once", async () => {
  const begin = api.clock;
  for (let no = 0; no < 7; no++) {
    api.clock = new Date(begin.getTime() + 1_000 * Math.ceil((no + 1) / 2));
    await note({
      who: no % 2 === 0 ? "ada" : "bob",
      ...(no > 2 && { operation: no % 3 === 0 ? "renameCustomer" : "clearCache" }),
    });
  }
  const since = `since=${new Date(begin.getTime() + 1_000).toISOString()}`;
  const all = idsOf(await list(`?${since}`)).map(Number);
  expect(all).toHaveLength(7);
  expect(all).toEqual(all.toSorted((a, b) => b - a));
  const [g, f, e, d, c, b, a] = all;
  for (const limit of [1, 2, 3, 7]) expect(await walk(`?${since}&limit=${limit}`)).toEqual(all);
  const until = `until=${(begin.getTime() + 2_000) / 1_000}`;
  expect(await walk(`?${since}&${until}`)).toEqual([d, c, b, a]);
  expect(await walk(`?${since}&username=bob&limit=1`)).toEqual([f, d, b]);
  expect(await walk(`?${since}&operation=renameCustomer`)).toEqual([g, d]);
  expect(await walk(`?${since}&operation=clearCache`)).toEqual([f, e]);
  const former = encodeURIComponent("PUT /customer/:customer_id/");
  expect(await walk(`?${since}&operation=${former}`)).toEqual([c, b, a]);
  expect(await walk(`?${since}&username=nobody`)).toEqual([]);
});

test.each(["limit=0", "limit=201", "limit=x", "since=yesterday", "until=1e9", "after=7"])(
  "?%s is refused by name",
  async (query) => {
    const { status, body } = await list(`?${query}`);
    expect([status, at(body, "errors", "0", "path")]).toEqual([400, `?${query.split("=")[0]}`]);
  },
);

test("one page looks at a bounded number of lines, and leads on where it found less", async () => {
  const found: number[] = [];
  let after: Parameters<typeof ownAudit>[2]["after"];
  let pages = 0;
  const query = { since: undefined, until: undefined, username: "bob", operation: undefined };
  do {
    const asked = { ...query, limit: 50, after };
    const page = await store.transact(async (work) => ownAudit(work, customerId, asked, 2));
    expect(page.lines.length).toBeLessThanOrEqual(2);
    found.push(...page.lines.map(({ id }) => id));
    after = page.next;
    pages++;
  } while (after !== undefined);
  expect(pages).toBeGreaterThan(4);
  expect(found).toEqual(await walk("?username=bob"));
});

test("a customer with few lines among very many finds them by the index", async () => {
  const rows = Array.from({ length: 1_000 }, (_, no) => ({
    at: new Date(api.clock.getTime() + no).toISOString(),
    via: "api" as const,
    who: "flood",
    user_id: 9,
    customer_id: 4_711,
    action: "x",
    ids: "{}",
    change: "{}",
    address: null,
    request_id: null,
  }));
  for (let no = 0; no < 100; no++) await api.store.insertInto("audit").values(rows).execute();
  const beganMs = performance.now();
  for (let no = 0; no < 20; no++) expect((await list("?username=nobody")).body).toEqual([]);
  expect((performance.now() - beganMs) / 20).toBeLessThan(100);
});
