// What holds for every endpoint: routing, credentials, bodies, problem documents, lists, idempotency.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { member, openApi, type Api } from "./api-harness.ts";

let api: Api;
let token: string;

beforeAll(async () => {
  api = await openApi();
  token = await api.trial("ada");
});
afterAll(async () => api[Symbol.asyncDispose]());

describe("refusals", () => {
  const big = JSON.stringify({ tags: "x".repeat(1_200_000) });
  test.each([
    ["no such path", "GET", "/nothing/", {}, 404],
    ["a method that the path does not know", "DELETE", "/trial/", {}, 405],
    ["no credentials", "GET", "/domain/", {}, 401],
    ["credentials of another scheme", "GET", "/domain/", { auth: "Bearer x" }, 401],
    ["an unknown token", "GET", "/domain/", { auth: "Token nobodys" }, 401],
    ["malformed JSON", "POST", "/deployment-site/", { raw: '{"tags": }' }, 400],
    ["a body that is no object", "POST", "/deployment-site/", { raw: "[]" }, 400],
    [
      "a body that is not UTF-8",
      "POST",
      "/deployment-site/",
      { raw: Buffer.from([123, 255, 125]) },
      400,
    ],
    ["an unknown field", "POST", "/deployment-site/", { raw: '{"tagz":"a"}' }, 400],
    ["a field of the wrong type", "POST", "/deployment-site/", { raw: '{"tags":5}' }, 400],
    ["an oversize body", "POST", "/deployment-site/", { raw: big }, 413],
    [
      "another content type",
      "POST",
      "/deployment-site/",
      { raw: "tags=a", type: "text/plain" },
      415,
    ],
    ["a limit that is none", "GET", "/domain/?limit=0", {}, 400],
    ["a limit that is too large", "GET", "/domain/?limit=1001", {}, 400],
    ["an id that is none", "GET", "/deployment-site/abc/", {}, 404],
    ["a percent-encoding that is none", "GET", "/domain/%zz/", {}, 404],
    ["another customer's customer", "GET", "/customer/9999/", {}, 404],
  ] as const)("%s", async (_what, method, path, given, status) => {
    const { auth, raw, type } = { auth: undefined, raw: undefined, type: undefined, ...given };
    const needsToken = status !== 401;
    const reply = await api.call(method, path, {
      ...(needsToken && { token }),
      ...(raw !== undefined && { raw }),
      headers: {
        ...(auth !== undefined && { authorization: auth }),
        ...(type !== undefined && { "content-type": type }),
      },
    });
    expect(reply.status).toBe(status);
    expect(reply.headers["content-type"]).toBe("application/problem+json");
    expect(reply.body).toMatchObject({ type: "about:blank", status, detail: expect.any(String) });
    if (status === 401) expect(reply.headers["www-authenticate"]).toMatch(/^Token /);
    if (status === 405) expect(reply.headers["allow"]).toBe("POST");
  });

  test("an oversize body without a length is answered, not cut off", async () => {
    const chunked = { "transfer-encoding": "chunked" };
    const raw = JSON.stringify({ tags: "x".repeat(3_000_000) });
    const reply = await api.call("POST", "/deployment-site/", { token, raw, headers: chunked });
    expect(reply.status).toBe(413);
  });

  test("unknown fields are named, with what was meant", async () => {
    const { body } = await api.call("POST", "/deployment-site/", { token, body: { tagz: "a" } });
    expect(body).toMatchObject({
      errors: [{ path: "/tagz", message: "unknown field; did you mean tags?" }],
    });
  });

  test("malformed JSON is told with line and column", async () => {
    const raw = '{\n "tags": }';
    const { body } = await api.call("POST", "/deployment-site/", { token, raw });
    expect(body).toMatchObject({ detail: expect.stringContaining("line 2, column 10") });
  });
});

describe("requests", () => {
  test("both slash forms are served", async () => {
    for (const path of ["/domain", "/domain/"]) {
      expect((await api.call("GET", path, { token })).status).toBe(200);
    }
  });

  test("an empty body reads as {} whatever its type says", async () => {
    const headers = { "content-type": "application/xml" };
    const reply = await api.call("POST", "/deployment-site/", { token, raw: "", headers });
    expect(reply.status).toBe(201);
    const id = member(reply.body, "id");
    const gone = await api.call("DELETE", `/deployment-site/${id}/`, { token, headers });
    expect([gone.status, gone.body]).toEqual([204, undefined]);
  });

  test("what was read can be edited and sent back; another id cannot", async () => {
    const made = await api.call("POST", "/deployment-site/", { token, body: { tags: "a" } });
    const path = `/deployment-site/${member(made.body, "id")}/`;
    const read = await api.call("GET", path, { token });
    const body = { ...Object(read.body), tags: "b" };
    const put = await api.call("PUT", path, { token, body });
    expect(put.body).toMatchObject({ deployment_tags: "b" });
    const other = await api.call("PUT", path, { token, body: { ...body, id: 4711 } });
    expect(other).toMatchObject({ status: 400, body: { errors: [{ path: "/id" }] } });
  });
});

describe("lists", () => {
  test("are complete and in order of id; with a limit they lead on", async () => {
    const walker = await api.trial("walker");
    for (let n = 0; n < 5; n++)
      await api.call("POST", "/deployment-site/", { token: walker, body: { tags: `t${n}` } });
    const all = await api.call("GET", "/deployment-site/", { token: walker });
    const ids = (body: unknown): number[] =>
      Array.isArray(body) ? body.map((site) => Number(member(site, "id"))) : [];
    expect(ids(all.body)).toHaveLength(5);
    expect(ids(all.body)).toEqual(ids(all.body).toSorted((a, b) => a - b));

    const walked: number[] = [];
    let path: string | undefined = "/deployment-site/?limit=2";
    while (path !== undefined) {
      const page = await api.call("GET", path, { token: walker });
      walked.push(...ids(page.body));
      path = /<([^>]+)>; rel="next"/.exec(String(page.headers["link"] ?? ""))?.[1];
    }
    expect(walked).toEqual(ids(all.body));
  });

  test("an empty one is an empty array", async () => {
    const lonely = await api.trial("lonely");
    expect((await api.call("GET", "/domain/", { token: lonely })).body).toEqual([]);
  });
});

describe("Idempotency-Key", () => {
  const create = async (key: string, tags: string) =>
    api.call("POST", "/deployment-site/", {
      token,
      body: { tags },
      headers: { "idempotency-key": key },
    });

  test("the first answer is repeated, secret and all, and nothing is done twice", async () => {
    const first = await create("k-1", "one");
    const again = await create("k-1", "one");
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.body).toEqual(first.body);
    expect(again.headers["idempotency-replayed"]).toBe("true");
  });

  test("two at the same time are one", async () => {
    // In step: both have looked for an earlier answer, and found none, before either writes.
    let first: (() => void) | undefined;
    api.gate = async () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      if (first === undefined) first = resolve;
      else {
        first();
        first = undefined;
        resolve();
      }
      return promise;
    };
    const replies = await Promise.all([create("k-2", "two"), create("k-2", "two")]);
    api.gate = undefined;
    expect(replies.map(({ status }) => status)).toEqual([201, 201]);
    expect(new Set(replies.map(({ body }) => member(body, "id"))).size).toBe(1);
  });

  test("the same key with another body is a conflict", async () => {
    await create("k-3", "three");
    expect((await create("k-3", "four")).status).toBe(409);
  });

  test("the key of another user is another key", async () => {
    await create("k-4", "four");
    const other = await api.trial("eve");
    const reply = await api.call("POST", "/deployment-site/", {
      token: other,
      body: { tags: "five" },
      headers: { "idempotency-key": "k-4" },
    });
    expect(reply.status).toBe(201);
    expect(reply.headers["idempotency-replayed"]).toBeUndefined();
  });

  test("a refusal is not kept: the corrected request goes through", async () => {
    const at = (name: string) =>
      api.call("POST", "/domain/", {
        token,
        body: { name },
        headers: { "idempotency-key": "k-5" },
      });
    expect((await at("nodots")).status).toBe(400);
    expect((await at("k5.example.com")).status).toBe(201);
  });

  test("is forgotten after a day", async () => {
    const first = await create("k-6", "six");
    api.clock = new Date(api.clock.getTime() + 86_400_001);
    const later = await create("k-6", "seven");
    expect(later.status).toBe(201);
    expect(member(later.body, "id")).not.toBe(member(first.body, "id"));
  });

  test("one that is no key is refused", async () => {
    const key = "x".repeat(256);
    expect((await create(key, "a")).status).toBe(400);
  });
});
