// A field that stands twice in a body is refused by name on every operation that reads one: only one of the two could be taken, and the sender meant both.

import { afterAll, beforeAll, expect, test } from "vitest";
import { openApi, type Api } from "../api-harness.ts";

let api: Api;
let token: string;
beforeAll(async () => {
  api = await openApi();
  token = await api.trial("sender");
});
afterAll(async () => api[Symbol.asyncDispose]());

test("a field that is given twice is refused, and nothing is done", async () => {
  const reply = await api.call("POST", "/domain/", {
    token,
    raw: '{"name": "www.first.org",\n "name": "www.second.org"}',
  });
  expect(reply).toMatchObject({
    status: 400,
    body: {
      detail: 'the request is not valid: /name: "name" is given twice, again at line 2, column 2',
      errors: [{ path: "/name" }],
    },
  });
  expect((await api.call("GET", "/domain/", { token })).body).toEqual([]);
});

test("each of them is named, deeper ones too, whatever their values", async () => {
  const raw = '{"tags": [], "tags": [], "name": {"a~/b": 1, "a\\u007e/b": 1}}';
  const reply = await api.call("POST", "/domain/", { token, raw });
  expect(reply).toMatchObject({
    status: 400,
    body: { errors: [{ path: "/tags" }, { path: "/name/a~0~1b" }] },
  });
});

test("the same name in two objects of one body is no repetition", async () => {
  const raw = '{"name": "www.third.org", "tags": [{"name": 1}, {"name": 2}]}';
  const reply = await api.call("POST", "/domain/", { token, raw });
  expect(JSON.stringify(reply.body)).not.toContain("given twice");
  const good = await api.call("POST", "/domain/", { token, raw: '{"name": "www.third.org"}' });
  expect(good.status).toBe(201);
});

test("whoever sends a token that is none is told so, and not that one is missing", async () => {
  const detail = async (headers: Record<string, string>): Promise<unknown> =>
    (await api.call("GET", "/domain/", { headers })).body;
  expect(await detail({})).toMatchObject({
    status: 401,
    detail: "the request needs the header `Authorization: Token <API_TOKEN>`",
  });
  expect(await detail({ authorization: "Token nobodys" })).toMatchObject({
    status: 401,
    detail: "there is no such API token, or it was revoked or has expired",
  });
});
