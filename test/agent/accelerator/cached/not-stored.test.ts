// Why an answer of the origin is not stored: told to its visitor in Cache-Status, and recorded as passed on; over the lane, over node:http and over HTTP/2.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { tagsMax } from "../../../../src/core/http/cache-tags.ts";
import { until } from "../../../support/until.ts";
import { fresh, type Handler } from "../stage.ts";
import { visited, ways, type VisitAsked } from "../visited.ts";

const lasting = "max-age=60";
const answer =
  (status: number, head: Readonly<Record<string, string>>): Handler =>
  (_q, r) =>
    r.writeHead(status, head).end("body");
const saying = (cacheControl: string, more: Readonly<Record<string, string>> = {}): Handler =>
  answer(200, { "Cache-Control": cacheControl, ...more });
const withoutEnd: Handler = (q) =>
  q.socket.end(
    `HTTP/1.1 200 OK\r\nCache-Control: ${lasting}\r\nConnection: close\r\n\r\nuntil the end`,
  );
const tooManyTags = Array.from({ length: tagsMax + 1 }, (_, no) => `t${no}`).join(" ");
const ofPart = { headers: { range: "bytes=1-2" } };

const rows: readonly (readonly [string, Handler, VisitAsked?])[] = [
  ["no-store", saying("no-store")],
  ["private", saying(`private, ${lasting}`)],
  ["no-cache", saying("no-cache")],
  ["no-cache", answer(200, { Pragma: "no-cache" })],
  ["stale", saying("max-age=0")],
  ["stale", saying(lasting, { Age: "61" })],
  ["no-freshness", answer(200, {})],
  ["no-freshness", answer(503, {})],
  ["set-cookie", saying(lasting, { "Set-Cookie": "a=b" })],
  ["vary", saying(lasting, { Vary: "*" })],
  ["must-understand", answer(299, { "Cache-Control": `must-understand, no-store, ${lasting}` })],
  ["status", answer(206, { "Cache-Control": lasting, "Content-Range": "bytes 1-4/9" }), ofPart],
  ["range", answer(400, { "Cache-Control": lasting }), ofPart],
  ["cookie", answer(200, {}), { cookie: "sid=1" }],
  ["authorization", saying(lasting), { headers: { authorization: "Basic eA==" } }],
  ["request-no-store", saying(lasting), { headers: { "cache-control": "no-store" } }],
  ["tags", saying(lasting, { "Surrogate-Key": tooManyTags })],
  ["no-length", withoutEnd],
];

test("docs/caching.md explains these reasons and no others", () => {
  const text = readFileSync(join(import.meta.dirname, "../../../../docs/caching.md"), "utf8");
  const [, table = ""] = text.split("| `detail=` |");
  const [explained = ""] = table.split("\n\n");
  const names = [...explained.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, name]) => name);
  expect(new Set(names)).toEqual(new Set(rows.map(([reason]) => reason)));
});

describe.each(ways)("over %s", (way) => {
  test("every reason is told, and recorded as passed on", async () => {
    for (const [reason, handler, asked = {}] of rows) {
      await using s = await visited(way, handler, {});
      for (const n of [1, 2]) {
        const { headers } = await s.visit("/", { cookie: [], ...asked });
        expect(headers["cache-status"]).toBe(`accel-agent; fwd=uri-miss; detail=${reason}`);
        await until("the record", () => s.edge.records.length === n);
      }
      expect(s.edge.records.map(({ cache }) => cache)).toEqual(["pass", "pass"]);
      expect(s.edge.cache.entries).toEqual([]);
    }
  });

  it("is told with the reason for asking, and with what the visitor has already", async () => {
    await using s = await visited(way, (q, r, n) => {
      if (n === 1) fresh(q, r, n);
      else saying("private", { ETag: '"own"' })(q, r, n);
    }, {}); // prettier-ignore
    expect(await s.get()).toBe("200 v1 fwd=uri-miss; stored");
    s.edge.skewMs = 61_000;
    expect(await s.get()).toBe("200 body fwd=stale; detail=private");
    const has = { headers: { "if-none-match": '"own"' } };
    expect(await s.get([], has)).toBe("304  fwd=uri-miss; detail=private; fwd-status=200");
    await until("the records", () => s.edge.records.length === 3);
    expect(s.edge.records.map(({ cache }) => cache)).toEqual(["miss", "pass", "pass"]);
  });

  it("is not told of HEAD, nor where no answer came: those remain misses", async () => {
    await using s = await visited(way, (q, r, n) => {
      if (q.method === "HEAD") saying("no-store")(q, r, n);
      else r.destroy();
    }, {}); // prettier-ignore
    expect(await s.get([], { method: "HEAD" })).toBe("200  fwd=uri-miss");
    const { status, headers } = await s.visit("/", { cookie: [] });
    expect([status, headers["cache-status"]]).toEqual([502, undefined]);
    await until("the records", () => s.edge.records.length === 2);
    expect(s.edge.records.map(({ cache }) => cache)).toEqual(["miss", "miss"]);
  });
});
