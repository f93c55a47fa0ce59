// Rules chosen by the media type of the answer: over the lane, over node:http and over HTTP/2.

import { request } from "node:http";
import { describe, expect, it } from "vitest";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { until } from "../../../support/until.ts";
import { host } from "../edge.ts";
import type { Handler } from "../stage.ts";
import { visited, ways, type VisitAsked, type Visited } from "../visited.ts";

type Cache = NonNullable<SiteInput["cache"]>;
type Rule = NonNullable<Cache["rules"]>[number];

/** The last part of the path is the subtype of the answer; each says what it is told of cookies. */
const typed: Handler = (q, r, n) => {
  const path = new URL(`http://x${q.url}`).pathname;
  const types: Readonly<Record<string, string>> = {
    "/png": "image/png",
    "/svg": "Image/SVG+XML; charset=utf-8",
    "/css": "text/css",
    "/html": "text/html",
    "/404": "image/png",
  };
  const type = types[path];
  if (type !== undefined) r.setHeader("Content-Type", type);
  if (path === "/404") r.statusCode = 404;
  r.end(`v${n} ${q.headers.cookie ?? "-"}`);
};

const forTypes = (types: readonly string[], rule: Omit<Rule, "path" | "match">): Rule => ({
  path: "/**",
  match: { media_type: [...types] },
  ...rule,
});
const named = (name: string) => ({ response: { set: { "X-Rule": name } } });
const images = forTypes(["image/*"], { ttl_s: 60, browser_ttl_s: 5, headers: named("image") });
const styles = forTypes(["text/css"], { ttl_s: 30, headers: named("css") });
const rest = { headers: named("rest") };

/** Status, the rule by its header, what browsers are told and how the cache took part. */
async function said(s: Visited, path: string, asked: VisitAsked = {}): Promise<string> {
  const { status, headers } = await s.visit(path, { cookie: [], ...asked });
  const textOf = (name: string): string => {
    const value = headers[name];
    return typeof value === "string" ? value : "-";
  };
  const how = /hit.*|fwd=.*/.exec(textOf("cache-status"))?.[0] ?? "-";
  return [status, textOf("x-rule"), textOf("cache-control"), how].join(" ");
}

async function under(way: (typeof ways)[number], handler: Handler, cache: Cache): Promise<Visited> {
  const s = await visited(way, handler, {});
  s.publish(cache);
  return s;
}

describe.each(ways)("over %s", (way) => {
  it("each type has its lifetime and its headers, and what has none the rest", async () => {
    await using s = await under(way, typed, { rules: [images, styles], default: rest });
    for (const path of ["/png", "/svg"]) {
      expect(await said(s, path)).toBe("200 image max-age=5 fwd=uri-miss; stored");
      for (let n = 0; n < 3; n++) {
        expect(await said(s, path)).toBe("200 image max-age=5 hit; ttl=60");
        expect(await said(s, path, { method: "HEAD" })).toBe("200 image max-age=5 hit; ttl=60");
      }
    }
    expect(await said(s, "/css")).toBe("200 css - fwd=uri-miss; stored");
    for (let n = 0; n < 3; n++) expect(await said(s, "/css")).toBe("200 css - hit; ttl=30");
    for (let n = 0; n < 2; n++)
      for (const path of ["/html", "/none"])
        expect(await said(s, path)).toBe("200 rest - fwd=uri-miss; detail=no-freshness");
    expect(await said(s, "/css", { method: "HEAD" })).toBe("200 css - hit; ttl=30");
    expect(await said(s, "/svg?1", { method: "HEAD" })).toBe("200 image max-age=5 fwd=uri-miss");
  });

  it("what is passed on has the rule of its type too", async () => {
    await using s = await under(way, typed, {
      rules: [images, { path: "/png", ...rest, bypass: true }],
      default: rest,
    });
    expect(await said(s, "/svg", { method: "POST" })).toBe("200 image - fwd=method");
    expect(await said(s, "/html", { method: "POST" })).toBe("200 rest - fwd=method");
    for (let n = 0; n < 2; n++) expect(await said(s, "/png")).toBe("200 image - fwd=bypass");
  });

  it("a changed rule counts at once for what is stored", async () => {
    await using s = await under(way, typed, { rules: [images], default: { ttl_s: 90 } });
    await said(s, "/png");
    await said(s, "/css");
    s.publish({ rules: [styles], default: { ttl_s: 90, ...rest } });
    for (let n = 0; n < 3; n++) {
      expect(await said(s, "/png")).toBe("200 rest - hit; ttl=60");
      expect(await said(s, "/css")).toBe("200 css - hit; ttl=30");
    }
    s.publish({ rules: [images], default: {} });
    for (let n = 0; n < 3; n++)
      expect(await said(s, "/png")).toBe("200 image max-age=5 hit; ttl=60");
    expect(await said(s, "/css")).toBe("200 - - fwd=stale; detail=no-freshness"); // The origin names no lifetime.
  });

  it("a confirmation has the rule of the stored type, or of the type that it says", async () => {
    const types = ["image/png", undefined, "text/css", undefined];
    await using s = await under(way, (_q, r, n) => {
      const type = types[n - 1];
      r.setHeader("ETag", '"1"');
      if (type !== undefined) r.setHeader("Content-Type", type);
      if (n > 1) r.writeHead(304).end();
      else r.end("v1");
    }, { rules: [images, styles], default: rest }); // prettier-ignore
    await said(s, "/");
    s.edge.skewMs = 100_000;
    expect(await said(s, "/")).toBe("200 image max-age=5 fwd=stale; fwd-status=304; ttl=60");
    for (let n = 0; n < 3; n++) expect(await said(s, "/")).toBe("200 image max-age=5 hit; ttl=60");
    s.edge.skewMs = 200_000;
    expect(await said(s, "/")).toBe("200 css - fwd=stale; fwd-status=304; ttl=30");
    for (let n = 0; n < 3; n++) expect(await said(s, "/")).toBe("200 css - hit; ttl=30");
    expect(await said(s, "/", { headers: { "if-none-match": '"1"' } })).toBe("304 css - hit; ttl=30");
    s.edge.skewMs = 300_000;
    expect(await said(s, "/", { method: "HEAD" })).toBe("200 css - fwd=stale; fwd-status=304; ttl=30");
    expect(s.seen.length).toBe(4);
  }); // prettier-ignore

  it("a visitor's own cookies: nothing is shared under a lifetime of the rule", async () => {
    await using s = await under(way, (q, r, n) => {
      if (q.url?.endsWith("?said") === true) r.setHeader("Cache-Control", "max-age=600");
      typed(q, r, n);
    }, { rules: [images] }); // prettier-ignore
    for (const [query, browser] of [["", "max-age=5"], ["?said", "max-age=600"]] as const) {
      const path = `/png${query}`;
      const own = `200 image ${query === "" ? "-" : browser} fwd=`;
      expect(await said(s, path, { cookie: "sid=1" })).toBe(`${own}uri-miss; detail=cookie`);
      expect(await said(s, path)).toBe("200 image max-age=5 fwd=uri-miss; stored");
      for (let n = 0; n < 3; n++) {
        expect(await said(s, path, { cookie: "sid=1" })).toBe(`${own}request; detail=cookie`);
        expect(await said(s, path)).toBe("200 image max-age=5 hit; ttl=60");
      }
    }
    expect(s.told.filter((cookie) => cookie === "sid=1").length).toBe(8);
    // Other types are as the origin says, for those with cookies as well.
    await said(s, "/css?said");
    expect(await said(s, "/css?said", { cookie: "sid=1" })).toBe("200 - max-age=600 hit; ttl=600");
  }); // prettier-ignore

  it("the next rule says what cookies and parameters mean", async () => {
    await using s = await under(way, typed, {
      rules: [images],
      default: { query: { ignore: ["utm_*"] }, cookies: { vary: ["lang"], ignore: ["*"] } },
    });
    const get = async (cookie: string, query: string) => await s.get(cookie, {}, `/png${query}`);
    expect(await get("lang=de; sid=1", "?utm_a=1")).toBe("200 v1 lang=de fwd=uri-miss; stored");
    for (let n = 0; n < 3; n++) expect(await get("sid=2; lang=de", "")).toBe("200 v1 lang=de hit");
    expect(await get("lang=fr", "?utm_b=1")).toBe("200 v2 lang=fr fwd=vary-miss; stored");
  });

  it("cookies that are set are removed from what its rule says, and from nothing else", async () => {
    await using s = await under(way, (q, r, n) => {
      r.setHeader("Set-Cookie", "sid=1");
      typed(q, r, n);
    }, { rules: [{ ...images, ignore_set_cookie: true }], default: { ttl_s: 60 } }); // prettier-ignore
    const cookieOf = async (path: string) => (await s.visit(path, { cookie: [] })).headers["set-cookie"];
    for (let n = 0; n < 3; n++) {
      expect(await cookieOf("/png")).toBeUndefined();
      expect([await cookieOf("/html")].flat()).toEqual(["sid=1"]);
    }
  }); // prettier-ignore

  it("404 and stale answers have the rule of their type", async () => {
    const stale = { stale_while_revalidate_s: 600, ...rest };
    const rules = [{ ...images, negative_ttl_s: 7, stale_if_error_s: 600 }, forTypes(["text/css"], { ttl_s: 30, ...stale })];
    let isDown = false;
    await using s = await under(way, (q, r, n) => {
      if (isDown) r.writeHead(503).end("down");
      else typed(q, r, n);
    }, { rules, default: { ttl_s: 60 } }); // prettier-ignore
    await said(s, "/404");
    for (let n = 0; n < 3; n++) expect(await said(s, "/404")).toMatch(/^404 image .* hit; ttl=7$/);
    for (const path of ["/png", "/css", "/html"]) await said(s, path);
    s.edge.skewMs = 100_000;
    isDown = true;
    expect(await said(s, "/png")).toMatch(/^200 image - fwd=stale; fwd-status=503; detail=stale-if-error/);
    expect(await said(s, "/html")).toMatch(/^503 - - fwd=stale/);
    expect(await said(s, "/css")).toMatch(/^200 rest - hit; ttl=-/);
    isDown = false;
    await until("it was refreshed", async () => (await said(s, "/css")) === "200 rest - hit; ttl=30");
  }); // prettier-ignore

  it("who waits gets what came only if the rule of its type lets him have it", async () => {
    const gate = Promise.withResolvers<undefined>();
    await using s = await under(way, (q, r, n) => {
      void gate.promise.then(() => typed(q, r, n));
    }, { rules: [images] }); // prettier-ignore
    const first = s.get([], {}, "/png");
    await until("one asks", () => s.seen.length === 1);
    const both = [s.get("sid=1", {}, "/png"), s.get([], {}, "/png")];
    gate.resolve(undefined);
    expect(await first).toBe("200 v1 - fwd=uri-miss; stored");
    expect((await Promise.all(both)).map((text) => text.replace(/ (?:fwd|hit).*/, ""))).toEqual(["200 v2 sid=1", "200 v1 -"]);
  }); // prettier-ignore

  it("a rule that forbids changed bodies keeps its types from being compressed", async () => {
    const headers = { response: { set: { "Cache-Control": "no-transform" } } };
    await using s = await under(way, (_q, r) => {
      r.setHeader("Content-Type", _q.url === "/css" ? "text/css" : "text/html");
      r.end("body ".repeat(1_000));
    }, { rules: [forTypes(["text/css"], { ttl_s: 60, headers })], default: { ttl_s: 60 } }); // prettier-ignore
    for (let n = 0; n < 4; n++) {
      const varies = async (path: string) => (await s.visit(path, { cookie: [] })).headers["vary"];
      expect(await varies("/css")).toBeUndefined();
      expect(await varies("/html")).toMatch(/accept-encoding/i);
    }
  });
});

it("what a rule of some type removes is in no interim answer", async () => {
  await using s = await under("node:http", (q, r, n) => {
    r.writeEarlyHints({ link: "</a.css>; rel=preload", "x-secret": "1", "x-kept": "1" });
    typed(q, r, n);
  }, { rules: [forTypes(["image/*"], { headers: { response: { remove: ["X-Secret"] } } })] }); // prettier-ignore
  for (const method of ["GET", "POST"]) {
    const { promise, resolve, reject } = Promise.withResolvers<object>();
    const headers = { host };
    const asked = request({ port: s.edge.port, path: "/html", method, headers, agent: false });
    asked.once("error", reject);
    asked.once("information", (info) => resolve(info.headers));
    asked.once("response", (response) => response.resume());
    asked.end();
    expect(Object.keys(await promise).toSorted()).toEqual(["link", "x-kept"]);
  }
});
