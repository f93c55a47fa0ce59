// Parameters of the query that an operation does not know are refused by name, on every operation; what stands in a path in the place of an id or a name is
// told as it was sent; a domain is refused for the reason for which it is none.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describedDocument } from "../../../../src/central/api/http/described.ts";
import { queryOf } from "../../../../src/central/api/http/query.ts";
import { createContract, type Operation } from "../../../support/api-contract.ts";
import { makeWorld, pathWith, queryWith, type World } from "../../../support/api-world.ts";
import { openApi, type Api, type Reply } from "../api-harness.ts";

const { operations } = createContract(describedDocument());
const rows = operations.map((one) => [`${one.method} ${one.path}`, one] as const);

let api: Api;
let world: World;
beforeAll(async () => {
  api = await openApi({ trialsPerAddress: 1e6, trialsTotal: 1e6 });
  world = await makeWorld(api, "asker");
});
afterAll(async () => api[Symbol.asyncDispose]());

/** With everything that the operation wants but a body. */
async function ask(operation: Operation, query: string, slots = world.slots): Promise<Reply> {
  const { method, told } = operation;
  const given = Object.fromEntries(queryOf(query));
  const path = `${pathWith(operation, slots)}${queryWith(operation, slots, given)}`;
  const isBasic = JSON.stringify(told["security"]).includes("Basic");
  if (!isBasic) return api.call(method, path, { token: world.token });
  return api.call(method, path, { headers: { authorization: "Basic eDp5" } });
}

describe("a parameter that nobody knows", () => {
  test.each(rows)("%s refuses it by name", async (_name, operation) => {
    const reply = await ask(operation, "?nonsense=1");
    // Who may publish is asked for a password first.
    if (JSON.stringify(operation.told["security"]).includes("Basic"))
      return expect(reply.status).toBe(401);
    expect(reply).toMatchObject({
      status: 400,
      body: {
        detail: expect.stringContaining("?nonsense: unknown parameter"),
        errors: [{ path: "?nonsense" }],
      },
    });
  });

  test.each(rows.filter(([name]) => name.startsWith("GET ")))(
    "%s takes format=json and nothing else of it",
    async (_name, operation) => {
      const [plain, json] = [await ask(operation, ""), await ask(operation, "?format=json")];
      expect(json.status).toBe(plain.status);
      expect(json.status).not.toBe(400);
      expect(await ask(operation, "?format=xml")).toMatchObject({
        status: 400,
        body: { errors: [{ path: "?format", message: "must be json" }] },
      });
    },
  );

  test("nothing is done by a request with one", async () => {
    const path = "/deployment-site/";
    const count = async (): Promise<number> =>
      Object.values(Object((await api.call("GET", path, { token: world.token })).body)).length;
    const before = await count();
    const body = { tags: "made" };
    expect((await api.call("POST", `${path}?dry_run=1`, { token: world.token, body })).status).toBe(
      400,
    );
    expect(await count()).toBe(before);
  });

  test.each([
    ["/list-bad-bots/?limits=1", "?limits", "unknown parameter; did you mean limit?"],
    ["/domain/?Limit=1", "?Limit", "unknown parameter; did you mean limit?"],
    ["/domain/?page=2", "?page", "unknown parameter; this call has limit, after"],
    ["/incominglogs/?form=0", "?form", expect.stringMatching(/this call has .*since/)],
    ["/incominglogs/?sinse=0", "?sinse", "unknown parameter; did you mean since?"],
    ["/bot-access-policy/?x=1", "?x", "unknown parameter; this call has none"],
    ["/domain/?=1", "?", "unknown parameter; this call has limit, after"],
    ["/domain/?limit=1&limit=2", "?limit", "must be given once"],
    ["/domain/?limit=1?nonsense=2", "?limit&after", expect.stringContaining("limit must be")],
    [`/domain/?${"n".repeat(5_000)}=1`, `?${"n".repeat(100)}`, expect.any(String)],
  ])("%s is told %s", async (path, at, message) => {
    const reply = await api.call("GET", path, { token: world.token });
    expect(reply).toMatchObject({ status: 400, body: { errors: [{ path: at, message }] } });
  });

  test("of many, the first twenty are told", async () => {
    const query = Array.from({ length: 500 }, (_, n) => `p${n}=1`).join("&");
    const { status, body } = await api.call("GET", `/domain/?${query}`, { token: world.token });
    expect([status, Object(body).errors.length]).toEqual([400, 20]);
  });

  test("who is nobody is told so first", async () => {
    expect((await api.call("GET", "/domain/?x=1")).status).toBe(401);
  });

  test("known ones go on as before", async () => {
    const { token, slots } = world;
    const wait = `/clear-accelerator-cache/${slots["domain"]}/?wait=0&format=json`;
    const body = { url_path_patterns: ["path:css"] };
    expect((await api.call("POST", wait, { token, body })).status).toBe(200);
    for (const path of ["/domain/?limit=1&after=0", "/incominglogs/?limit=1&since=0", "/domain/?"])
      expect((await api.call("GET", path, { token })).status).toBe(200);
  });
});

test("a query is all behind the first question mark", () => {
  expect([...queryOf("/x/?a=1?b=2")]).toEqual([["a", "1?b=2"]]);
  expect([...queryOf("/x/")]).toEqual([]);
});

const idNames = Object.keys(JSON.parse(JSON.stringify(describedDocument()))["paths"])
  .join()
  .match(/\{\w+\}/g);

/** Names of parameters that are numbers, by the document. */
function idsOf({ told }: Operation): readonly string[] {
  return Object.values(Object(told["parameters"])).flatMap((one) => {
    const { name, schema, in: place } = Object(one);
    return place === "path" && Object(schema).type === "integer" ? [String(name)] : [];
  });
}

describe("what stands in the place of an id", () => {
  const withIds = rows.flatMap(([name, operation]) =>
    idsOf(operation).map((id) => [name, id, operation] as const),
  );

  test("is in many paths", () => {
    expect(idNames?.length).toBeGreaterThan(20);
    expect(withIds.length).toBeGreaterThan(20);
  });

  test.each(withIds)("%s says what it was given as %s", async (_name, id, operation) => {
    const slot =
      id === "channel_id" ? `${/chat/.test(operation.path) ? "chat" : "email"}:${id}` : id;
    for (const [given, shown] of [
      ["1abc", '"1abc" (an id is a whole number from 1 on, without zeros in front)'],
      ["007", '"007" (an id is'],
      ["9999999999999999999", " 9999999999999999999"],
    ] as const) {
      const slots = { ...world.slots, [slot]: given };
      const path = pathWith(operation, slots);
      const { method } = operation;
      const reply = await api.call(method, path, {
        token: world.token,
        ...(method === "PUT" && { body: bodyOf(operation) }),
      });
      expect(reply).toMatchObject({
        status: 404,
        body: { detail: expect.stringContaining(shown) },
      });
      expect(JSON.stringify(reply.body)).not.toMatch(/ 0\b/);
    }
  });

  /** An example, so that the path is what is wrong. */
  function bodyOf({ told }: Operation): unknown {
    const content = Object(Object(Object(told["requestBody"]).content)["application/json"]);
    const [first] = Object.values(Object(content.examples));
    return Object(first).value ?? {};
  }
});

describe("a domain's name", () => {
  const create = async (name: string): Promise<Reply> =>
    api.call("POST", "/domain/", { token: world.token, body: { name } });

  test.each([
    ["B.Example.", "b.example"],
    ["shop.EXAMPLE.com", "shop.example.com"],
    ["bücher.example.", "xn--bcher-kva.example"],
  ])("%s is %s", async (name, canonical) => {
    expect(await create(name)).toMatchObject({ status: 201, body: { name: canonical } });
    const path = `/domain/${encodeURIComponent(name)}/`;
    expect(await api.call("GET", path, { token: world.token })).toMatchObject({
      status: 200,
      body: { name: canonical },
    });
    expect((await create(canonical)).status).toBe(409);
  });

  test.each([
    ["localhost", "must be a host name with at least one dot"],
    ["example.", "must be a host name with at least one dot"],
    ["192.0.2.7", "must be a host name, not an IP address"],
    ["2001:db8::1", "must be a host name, not an IP address"],
    ["[::1]", "must be a host name, not an IP address"],
    ["https://www.example.com/", "must be a host name alone, not a URL or an address of mail"],
    ["ada@example.com", "must be a host name alone, not a URL or an address of mail"],
    ["www.example.com:8080", "must be a host name, without a port"],
    ["*.example.com", "must be a host name, not a wildcard"],
    ["www. example.com", "must be a host name, without blanks"],
    ["a..example", "must have no empty label between its dots"],
    [".example.com", "must have no empty label between its dots"],
    ["b.example..", "must have no empty label between its dots"],
    ["-a.example", "must have no label that begins or ends with a hyphen"],
    [`${"a".repeat(64)}.example`, "must have labels of at most 63 characters between its dots"],
    [`${"a.".repeat(130)}example`, "must be at most 253 characters"],
    ["a%b.example", "must be a host name: letters, digits and hyphens between dots"],
  ])("%s is refused: %s", async (name, message) => {
    expect(await create(name)).toMatchObject({
      status: 400,
      body: { errors: [{ path: "/name", message }] },
    });
  });
});
