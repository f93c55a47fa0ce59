// Headers that a rule sets and removes, in answers and in requests to the origin: over the lane, over node:http and over HTTP/2.

import { describe, expect, it } from "vitest";
import type { CacheInput } from "../../../../src/core/serving/effective-devlove.ts";
import { until } from "../../../support/until.ts";
import { host } from "../edge.ts";
import type { Handler } from "../stage.ts";
import { visited, ways, type VisitAsked, type Visited } from "../visited.ts";

const page: Handler = (q, r, n) => {
  r.setHeader("ETag", '"1"').setHeader("X-Debug", "1").setHeader("X-Frame", "a");
  r.setHeader("Content-Type", "text/plain");
  if (q.url === "/private") r.setHeader("Cache-Control", "private");
  if (q.headers["if-none-match"] !== undefined) r.writeHead(304).end();
  else r.end(`v${n}`);
};
const response = {
  set: { "X-Robots-Tag": "noindex", "x-frame": "b", "Content-Type": "text/x-own" },
  remove: ["x-debug"],
};
const answers: CacheInput = { ttl_s: 60, headers: { response } };

describe.each(ways)("answers over %s", (way) => {
  const said = async (s: Visited, path = "/", asked: VisitAsked = {}): Promise<string> => {
    const { status, headers } = await s.visit(path, { cookie: [], ...asked });
    const names = ["x-robots-tag", "x-frame", "x-debug", "content-type"];
    const how = /hit|fwd=[\w-]+/.exec(String(headers["cache-status"]))?.[0];
    return [
      status,
      ...names.map((name) => JSON.stringify(headers[name])?.slice(1, -1) ?? "-"),
      how,
    ].join(" ");
  };
  const etag = { headers: { "if-none-match": '"1"' } };

  it("a miss, each hit, its head, a part and what the visitor has", async () => {
    await using s = await visited(way, page, answers);
    const asSaid = "noindex b - text/x-own";
    expect(await said(s)).toBe(`200 ${asSaid} fwd=uri-miss`);
    for (let n = 0; n < 3; n++) {
      expect(await said(s)).toBe(`200 ${asSaid} hit`);
      expect(await said(s, "/", { method: "HEAD" })).toBe(`200 ${asSaid} hit`);
      expect(await said(s, "/", { headers: { range: "bytes=0-0" } })).toBe(`206 ${asSaid} hit`);
      // A 304 does not describe the body.
      expect(await said(s, "/", etag)).toBe("304 noindex b - - hit");
    }
    expect(s.seen.length).toBe(1);
  });

  it("what is passed on, what is for one visitor, and what was confirmed", async () => {
    await using s = await visited(way, page, answers);
    const asSaid = "noindex b - text/x-own";
    expect(await said(s, "/", { cookie: "sid=1" })).toBe(`200 ${asSaid} fwd=bypass`);
    expect(await said(s, "/", { ...etag, cookie: "sid=1" })).toBe("304 noindex b - - fwd=bypass");
    expect(await said(s, "/post", { method: "POST" })).toBe(`200 ${asSaid} fwd=method`);
    expect(await said(s, "/private")).toBe(`200 ${asSaid} fwd=uri-miss`);
    expect(await said(s, "/head", { method: "HEAD" })).toBe(`200 ${asSaid} fwd=uri-miss`);
    await said(s);
    s.edge.skewMs = 100_000;
    expect(await said(s)).toBe(`200 ${asSaid} fwd=stale`);
  });

  it("a changed rule counts at once for what is stored, which is as it came", async () => {
    await using s = await visited(way, page, answers);
    for (let n = 0; n < 3; n++) await said(s);
    s.publish({ default: { ttl_s: 60 } });
    for (let n = 0; n < 3; n++) expect(await said(s)).toBe("200 - a 1 text/plain hit");
    s.publish({ default: { ttl_s: 60, headers: { response: { remove: ["X-Frame"] } } } });
    for (let n = 0; n < 3; n++) expect(await said(s)).toBe("200 - - 1 text/plain hit");
  });

  it("only under the rule, and not where a path may be meant for others", async () => {
    await using s = await visited(way, page, {});
    s.publish({ rules: [{ path: "/a/**", ...answers }], default: { ttl_s: 60 } });
    expect(await said(s, "/a/b")).toBe("200 noindex b - text/x-own fwd=uri-miss");
    expect(await said(s, "/b")).toBe("200 - a 1 text/plain fwd=uri-miss");
    expect(await said(s, "/a%2fb")).toMatch(/^200 - a 1 text\/plain/);
  });
});

/** What the origin is told, and by which it makes its page. */
const echo: Handler = (q, r, n) => {
  const { "x-key": key = "-", "x-kind": kind = "-", "user-agent": agent = "-" } = q.headers;
  if (q.url === "/vary") r.setHeader("Vary", "User-Agent, X-Kind, X-Key");
  const tag = `"${String(key)}"`;
  r.setHeader("ETag", tag);
  if (q.headers["if-none-match"] === tag) r.writeHead(304).end();
  else r.end(`v${n} ${[key, kind, agent].map(String).join(" ")}`);
};
const request = { set: { "X-Key": "k1" }, remove: ["x-kind", "User-Agent"] };
const asks: CacheInput = { ttl_s: 60, headers: { request } };
const by = (agent: string, kind = "w", key = "evil") => ({
  headers: { "user-agent": agent, "X-Kind": kind, "x-key": key, x_key: "evil" },
});

describe.each(ways)("requests over %s", (way) => {
  it("the origin is told what the rule says, and never what the visitor says of it", async () => {
    await using s = await visited(way, echo, asks);
    expect(await s.get([], by("A"))).toBe("200 v1 k1 - - fwd=uri-miss; stored");
    expect(await s.get("sid=1", by("A"))).toBe("200 v2 k1 - - fwd=bypass; detail=cookie");
    expect(await s.get([], { ...by("A"), method: "POST" })).toBe("200 v3 k1 - - fwd=method");
    expect(await s.get([], { ...by("A"), method: "HEAD" }, "/h")).toBe("200  fwd=uri-miss");
    expect(s.seen.map((q) => [q.headers["x-key"], q.headers["x-kind"]])).toEqual(
      Array.from({ length: 4 }, () => ["k1", undefined]),
    );
  });

  it("what the origin varies by is told alike, so it tells nobody apart", async () => {
    await using s = await visited(way, echo, asks);
    expect(await s.get([], by("A", "1"), "/vary")).toBe("200 v1 k1 - - fwd=uri-miss; stored");
    for (const agent of ["A", "B", "C", "A"])
      expect(await s.get([], by(agent, "2", agent), "/vary")).toBe("200 v1 k1 - - hit");
    expect(await s.get([], {}, "/vary")).toBe("200 v1 k1 - - hit");
    s.edge.skewMs = 100_000;
    expect(await s.get([], by("D"), "/vary")).toBe("200 v1 k1 - - fwd=stale; fwd-status=304");
    expect(await s.get([], by("E"), "/vary")).toBe("200 v1 k1 - - hit");
    expect(s.seen.at(-1)?.headers).toMatchObject({ "x-key": "k1", "if-none-match": '"k1"' });
  });

  it("what it is told is kept with the entry by a digest alone, and the lane knows it", async () => {
    await using s = await visited(way, echo, asks);
    await s.get([], by("A"), "/vary");
    await s.get([], by("B"), "/vary");
    const key = { domain: host, host, kind: "generated", path: "/vary", query: "" } as const;
    const [entry] = s.edge.cache.find(key);
    expect(entry?.vary).toMatchObject({ "x-key": "", "x-kind": "", "user-agent": "" });
    const before = s.edge.quick.answer;
    for (const agent of ["C", "D"]) await s.get([], by(agent), "/vary");
    expect(s.edge.quick.answer - before).toBe(way === "node:http" ? 0 : 2);
  });

  it("without the rule the origin's Vary tells the same visitors apart", async () => {
    await using s = await visited(way, echo, { ttl_s: 60 });
    expect(await s.get([], by("A"), "/vary")).toBe("200 v1 evil w A fwd=uri-miss; stored");
    expect(await s.get([], by("B"), "/vary")).toBe("200 v2 evil w B fwd=vary-miss; stored");
    expect(await s.get([], by("A"), "/vary")).toBe("200 v1 evil w A hit");
  });

  it.each(["/", "/vary"])(
    "what was stored under other headers answers nobody: %s",
    async (path) => {
      await using s = await visited(way, echo, { ttl_s: 60 });
      const got = async (): Promise<string> => await s.get([], by("A"), path);
      expect(await got()).toBe("200 v1 evil w A fwd=uri-miss; stored");
      s.publish({ default: asks });
      expect(await got()).toBe("200 v2 k1 - - fwd=vary-miss; stored");
      for (let n = 0; n < 3; n++) expect(await got()).toBe("200 v2 k1 - - hit");
      s.publish({ default: { ttl_s: 60, headers: { request: { set: { "X-Key": "k2" } } } } });
      expect(await got()).toBe("200 v3 k2 w A fwd=vary-miss; stored");
      for (let n = 0; n < 3; n++) expect(await got()).toBe("200 v3 k2 w A hit");
      s.publish({ default: { ttl_s: 60 } });
      expect(await got()).toBe("200 v1 evil w A hit");
      s.publish({ default: asks });
      expect(await got()).toBe("200 v2 k1 - - hit");
    },
  );

  it("visitors with other values wait for one fetch", async () => {
    const gate = Promise.withResolvers<undefined>();
    await using s = await visited(way, (q, r, n) => {
      void gate.promise.then(() => echo(q, r, n));
    }, asks); // prettier-ignore
    const both = [s.get([], by("A"), "/vary"), s.get([], by("B"), "/vary")];
    await until("one asks", () => s.seen.length === 1);
    gate.resolve(undefined);
    const got = (await Promise.all(both)).map((text) => text.replace(/ (?:fwd|hit).*/, ""));
    expect(got).toEqual(["200 v1 k1 - -", "200 v1 k1 - -"]);
    expect(s.seen.length).toBe(1);
  });

  it("what is refreshed in the background is asked for in the same words", async () => {
    await using s = await visited(way, (q, r, n) => {
      const { "x-key": key, "x-kind": kind = "-" } = q.headers;
      r.end(`v${n} ${String(key)} ${String(kind)}`);
    }, { ...asks, stale_while_revalidate_s: 600 }); // prettier-ignore
    await s.get([], by("A"));
    s.edge.skewMs = 100_000;
    expect(await s.get([], by("B"))).toBe("200 v1 k1 - hit");
    await until("it was refreshed", async () => (await s.get([], by("C"))).startsWith("200 v2"));
    expect(await s.get([], by("D"))).toBe("200 v2 k1 - hit");
  });

  it("a target that may be meant for such a rule is passed on", async () => {
    await using s = await visited(way, echo, {});
    s.publish({ rules: [{ path: "/a/**", ...asks }], default: { ttl_s: 60 } });
    for (const n of [1, 2])
      expect(await s.get([], by("A"), "/a%2fb")).toBe(`200 v${n} evil w A fwd=bypass`);
  });
});
