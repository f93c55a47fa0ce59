// Documents that are meant to hurt: refused with the reason at POST, PUT and validate alike, soon, and the version in force stays as it was.

import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { member, openApi, type Api } from "./api-harness.ts";
import { cpuMs } from "../../support/cpu-time.ts";

let api: Api;
let token: string;
let siteId: number;
let file: string;
const name = "hostile.example.com";
const good = JSON.stringify({ domains: { [name]: { index: ["home.html"] } } });

beforeAll(async () => {
  api = await openApi();
  token = await api.trial("hostile");
  const site = await api.call("POST", "/deployment-site/", { token, body: {} });
  siteId = Number(member(site.body, "id"));
  await api.call("POST", "/domain/", { token, body: { name, deployment_site_id: siteId } });
  const body = { schema: "devlove/1", content: good };
  const made = await api.call("POST", `/${name}/devlove/good/`, { token, body });
  file = `/${name}/devlove/good/${member(made.body, "id")}/`;
  const { body: versions } = await api.call("GET", `/active-viewset/${name}/`, { token });
  const version: unknown = Array.isArray(versions)
    ? versions.find((one) => member(one, "name") === "good")
    : undefined;
  const path = `/active-viewset/${name}/${member(version, "id")}/`;
  expect((await api.call("PUT", path, { token, body: version })).status).toBe(200);
});
afterAll(async () => api[Symbol.asyncDispose]());

/** What is stored and what agents were told. */
async function held(): Promise<unknown> {
  const [read, versions] = await Promise.all([
    api.call("GET", file, { token }),
    api.call("GET", `/active-viewset/${name}/`, { token }),
  ]);
  const journal = await api.journal(siteId);
  return { file: read.body, versions: versions.body, journal, blobs: [...api.blobs.held.keys()] };
}

const places = [
  ["POST", `/${name}/devlove/another/`],
  ["PUT", () => file],
  ["POST", "/devlove/validate/"],
] as const;

/** Answers at the three places. */
async function refusals(sent: { readonly body?: unknown; readonly raw?: string }) {
  const before = await held();
  const replies = [];
  for (const [method, path] of places) {
    const at = typeof path === "string" ? path : path();
    replies.push(await api.call(method, at, { token, ...sent }));
  }
  expect(await held()).toEqual(before);
  return replies;
}

const many = (count: number, text: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => text(n)).join(",");
const domain = (members: string): string => `{"domains":{"${name}":{${members}}}}`;
const backend = (url: string): string => domain(`"backend":{"urls":["${url}"]}`);

describe.each<[string, string, RegExp]>([
  ["100,000 keys", domain(many(100_000, (n) => `"${n}":1`)), /is not a known key/],
  ["100,000 domains", `{"domains":{${many(100_000, (n) => `"${n}":1`)}}}`, /at most 10000 entries/],
  ["100,000 times one key", domain(many(100_000, () => '"a":1')), /given twice/],
  ["half a surrogate pair", domain('"not_found":"\ud800.html"'), /half a surrogate pair/],
  ["the escape of one", domain('"not_found":"\\ud800.html"'), /half a surrogate pair/],
  ["100,000 origins", domain(`"backend":{"urls":[${many(100_000, () => '"a"')}]}`), /1 to 16/],
  ["100,000 redirects", domain(`"redirects":[${many(100_000, () => "1")}]`), /0 to 5000/],
  ["a million levels", "[".repeat(2 ** 20), /deeper than 64 levels/],
  ["levels of objects", '{"domains":'.repeat(90_000), /deeper than 64 levels/],
  ["a name of a megabyte", `{"${"n".repeat(2 ** 20 - 10)}":1}`, /is not a known key/],
  ["a number of a megabyte", `{"domains":${"9".repeat(2 ** 20 - 20)}}`, /the number Infinity/],
  ["more than a megabyte", good + " ".repeat(2 ** 20), /larger than 1 MiB/],
  ["a cut document", good.slice(0, -1), /not valid JSON at line 1/],
  ["no JSON", "\u0000".repeat(1_000), /not valid JSON/],
  ["prototypes", '{"domains":{"__proto__":{}},"__proto__":{},"constructor":{}}', /__proto__/],
  ["cloud metadata", backend("http://169.254.169.254"), /link-local/],
  ["cloud metadata in disguise", backend("http://0xA9FEA9FE"), /link-local/],
  ["cloud metadata in IPv6", backend("http://[::ffff:a9fe:a9fe]"), /link-local/],
  ["cloud metadata by name", backend("http://metadata.google.internal"), /metadata service/],
  ["no host", backend("http://0.0.0.0"), /names no host/],
  ["a file", backend("file:///etc/passwd"), /must start with/],
])("%s", (_name, content, reason) => {
  test("are refused with the reason", async () => {
    const startedMs = cpuMs();
    const [post, put, validated] = await refusals({ body: { schema: "devlove/1", content } });
    expect(cpuMs(startedMs)).toBeLessThan(10_000); // Of all three.
    const message = expect.stringMatching(reason);
    const errors = expect.arrayContaining([expect.objectContaining({ message })]);
    expect(post).toMatchObject({ status: 400, body: { errors } });
    expect(put?.body).toEqual(post?.body);
    expect(put?.status).toBe(400);
    expect(validated).toMatchObject({
      status: 200,
      body: { status: "error", payload: { "devlove-valid": "False", errors } },
    });
    expect(JSON.stringify(post?.body).length).toBeLessThan(2 ** 20);
  }, 120_000);
});

test("a body that nests three million levels is refused", async () => {
  const content = "[".repeat(3_000_000) + "]".repeat(3_000_000);
  for (const reply of await refusals({ raw: `{"schema":"devlove/1","content":${content}}` }))
    expect(reply).toMatchObject({
      status: 400,
      body: { errors: [{ message: expect.stringContaining("deeper than 64 levels") }] },
    });
});

test("a gigabyte is refused when the limit is reached, and what follows is not kept", async () => {
  const before = await held();
  const memory = process.memoryUsage().rss;
  for (const [method, path] of places) {
    const at = typeof path === "string" ? path : path();
    const { status, sent } = await sendGigabyte(api.port, method, `/presentation-api/v1${at}`);
    expect(status).toBe(413);
    expect(sent).toBeLessThan(2 ** 28);
  }
  expect(process.memoryUsage().rss - memory).toBeLessThan(2 ** 28);
  expect(await held()).toEqual(before);
}, 180_000);

/** Chunked, so that nothing says its size before. Ends with the answer. */
async function sendGigabyte(
  port: number,
  method: string,
  path: string,
): Promise<{ status: number; sent: number }> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  let sent = 0;
  socket.setEncoding("latin1").on("data", (text: string) => {
    answer += text;
    if (answer.includes("\r\n\r\n")) socket.destroy();
  });
  socket.once("close", () => resolve(answer)).on("error", () => {});
  socket.write(
    `${method} ${path} HTTP/1.1\r\nHost: central\r\nAuthorization: Token ${token}\r\n` +
      "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
  );
  const piece = Buffer.concat([Buffer.from("100000\r\n"), Buffer.alloc(2 ** 20, " "), crlf]);
  const write = (): void => {
    while (!socket.destroyed && sent < 2 ** 30) {
      sent += 2 ** 20;
      if (!socket.write(piece)) return void socket.once("drain", write);
    }
  };
  write();
  const status = Number(/^HTTP\/1.1 (\d+)/.exec(await promise)?.[1] ?? 0);
  return { status, sent };
}

const crlf = Buffer.from("\r\n");

test("a short document that takes seconds to judge holds up nobody", async () => {
  // Forty names that are none of five thousand sub-domains: each is compared with each for what was meant.
  const { id, customer_id } = await api.store
    .selectFrom("domains")
    .select(["id", "customer_id"])
    .where("name", "=", name)
    .executeTakeFirstOrThrow();
  const rows = Array.from({ length: 5_000 }, (_, no) => ({
    domain_id: id,
    customer_id,
    name: `sub-domain-${no}.${name}`,
    share_views_and_views_dir_with_main_domain: 0,
  }));
  while (rows.length > 0)
    await api.store.insertInto("sub_domains").values(rows.splice(0, 1_000)).execute();
  const content = `{"domains":{${many(40, (no) => `"sub-damoin-${no}x.${name}":{}`)}}}`;
  const body = { schema: "devlove/1", content };
  const state = { isJudged: false };
  const judged = api.call("POST", `/${name}/devlove/slow/`, { token, body }).then((reply) => {
    state.isJudged = true;
    return reply;
  });
  let answered = 0;
  for (; !state.isJudged; answered++)
    expect((await api.call("GET", "/domain/1/", {})).status).toBe(401);
  expect((await judged).status).toBe(400);
  expect(answered).toBeGreaterThan(100);
}, 120_000);
