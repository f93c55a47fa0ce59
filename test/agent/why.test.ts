// `accel-agent why` says of a URL what its visitor meets: the same state, asked both ways.

import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { parseUrlArgument } from "../../src/agent/admin/url-argument.ts";
import { why } from "../../src/agent/why.ts";
import { blobPath } from "../../src/core/blob-path.ts";
import type { CacheInput, SiteInput } from "../../src/core/serving/effective-devlove.ts";
import { parseSha256 } from "../../src/core/ids.ts";
import { encodeManifestTable } from "../../src/core/serving/manifest-table.ts";
import { tempDir } from "../support/temp-dir.ts";
import { ask, host, openEdge, stateOf } from "./accelerator/edge.ts";
import type { Doubt } from "../../src/agent/cache/index/index-client.ts";
import type { Entry, EntryKey } from "../../src/agent/cache/entry.ts";
import { fresh, openStage, type Stage } from "./accelerator/stage.ts";

/** Status and body that a visitor gets, and what `why` says of the same. */
async function bothOf(site: SiteInput, path: string) {
  using dir = tempDir();
  const files = ["index.html", "gone.html"].map((name) => {
    const text = `<html>${name}</html>`;
    const sha256 = parseSha256(createHash("sha256").update(text).digest("hex"));
    if (sha256 === undefined) throw new Error("no digest");
    mkdirSync(dirname(join(blobPath(dir.path, sha256))), { recursive: true });
    writeFileSync(blobPath(dir.path, sha256), text);
    return { path: name, sha256, size: text.length, mime: "text/html" };
  });
  const views = { kind: "manifest", table: encodeManifestTable(files), prefix: "" } as const;
  await using edge = await openEdge({ blobsDir: dir.path, site, views });
  const { status, text } = await ask(edge, path);
  const keys: unknown[] = [];
  const said = await why(
    {
      index: {
        why: async (asked) => {
          keys.push(...asked.map(({ kind, path: keyPath }) => `${kind} ${keyPath}`));
          return { keys: [], clearNo: 0, anew: null };
        },
        doubt: () => undefined,
      },
      dropsUntil: null,
      state: stateOf(1, site, views),
      blobsDir: dir.path,
      nowMs: 0,
    },
    parseUrlArgument(`http://${host}${path}`),
  );
  return { visitor: [status, text], why: Object(said).a_plain_get, keys };
}

test("a single page answers for what is neither a file nor of a backend", async () => {
  const { visitor, why: said, keys } = await bothOf({ single_page: "index.html" }, "/orders/5");
  expect(visitor).toEqual([200, "<html>index.html</html>"]);
  expect(said).toEqual({
    serves: "static",
    cache: "miss",
    text: "no file and no backend: the single page index.html, 23 bytes",
  });
  expect(keys).toContain("static index.html");
});

test("a page for what is not there is a 404", async () => {
  const { visitor, why: said } = await bothOf({ not_found: "gone.html" }, "/orders/5");
  expect(visitor).toEqual([404, "<html>gone.html</html>"]);
  expect(said).toEqual({
    serves: "nothing",
    cache: "not asked",
    text: "no file and no backend: 404 with the page gone.html",
  });
});

test.each([
  ["pages that are not there", { single_page: "no.html", not_found: "no.html" }],
  ["neither page", {}],
])("with %s it is a plain 404", async (_, site) => {
  const { visitor, why: said } = await bothOf(site, "/orders/5");
  expect(visitor[0]).toBe(404);
  expect(said).toMatchObject({ serves: "nothing", text: "no file and no backend: 404" });
});

test("a file is itself, whatever the single page", async () => {
  const { visitor, why: said } = await bothOf({ single_page: "index.html" }, "/gone.html");
  expect(visitor).toEqual([200, "<html>gone.html</html>"]);
  expect(said).toMatchObject({ serves: "static", text: "the file gone.html, 22 bytes" });
});

type Cache = NonNullable<SiteInput["cache"]>;

/** Returns what a visitor who comes again gets, and what `why` says of him. */
async function metUnder(cache: Cache, cookie: string | null, path = "/a") {
  const dated = { "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT" };
  await using s = await openStage((q, r) => {
    r.sendDate = false;
    r.writeHead(q.headers["if-modified-since"] === undefined ? 200 : 304, dated).end();
  }, cache);
  await s.get(path);
  const said = await why(
    {
      index: {
        why: async (keys) => ({
          keys: keys
            .filter(({ kind }) => kind === "generated")
            .map((key) => ({
              key,
              entries: s.edge.cache.entries.map((entry) => ({
                ...entry,
                servable: true,
                softenedS: null,
              })),
              departures: [],
              mime: null,
              clears: [],
            })),
          clearNo: 0,
          anew: null,
        }),
        doubt: () => undefined,
      },
      dropsUntil: null,
      state: stateOf(1, { backend: { urls: [s.origin.url] }, cache }),
      blobsDir: "/nonexistent",
      nowMs: Date.now(),
    },
    parseUrlArgument(`http://${host}${path}`),
    cookie,
  );
  const got = await s.get(path, cookie === null ? {} : { headers: { cookie } });
  const { a_plain_get: met } = Object(said);
  return { got, met };
}

/** What is told in Cache-Status, and in words of `why`. */
const passedOn = "passed on to the backend, and not stored: the rule has a ttl_s, and the cookie";
const asked = "from the backend where it is not cached";
const sid = "_ga=1; sid=2";
const ofList = "_ga=1; _gid=2";
const ttl = { ttl_s: 60 };

test.each<[string, CacheInput, string | null, string, string, string]>([
  ["no cookie", ttl, null, "hit", "hit", asked],
  ["a login", ttl, sid, "fwd=bypass; detail=cookie", "not asked", `${passedOn} "sid" is not ignored`],
  ["what cannot be read", ttl, "odd", "fwd=bypass; detail=cookie", "not asked", "a cookie whose name cannot be read is not ignored"],
  ["cookies of the list", ttl, ofList, "hit", "hit", "all of them are ignored"],
  ["what the rule ignores", { ...ttl, cookies: { ignore: ["s*"] } }, sid, "hit", "hit", "all of them are ignored"],
  ["a cookie that bypasses", { ...ttl, cookies: { bypass: ["s*"] } }, sid, "fwd=bypass; detail=cookie", "not asked", 'cookies.bypass of the rule names the cookie "sid"'],
  ["what may hide one", { cookies: { bypass: ["s*"] } }, "odd", "fwd=bypass; detail=cookie", "not asked", "names a cookie whose name cannot be read"],
  ["cookies to vary by", { ...ttl, cookies: { vary: ["sid"] } }, sid, "fwd=vary-miss; stored", "miss", "with these cookies and no others: sid"],
  ["none of those to vary by", { ...ttl, cookies: { vary: ["sid"] } }, ofList, "hit", "hit", "all of them are ignored"],
  ["another than those to vary by", { cookies: { vary: ["lang"] } }, sid, "fwd=bypass; detail=cookie", "not asked", 'the rule has cookies.vary, and the cookie "sid" is not ignored'],
  ["a bypass", { bypass: true }, sid, "fwd=bypass", "not asked", "bypasses the cache"],
  ["only a date, no cookie", {}, null, "fwd=stale; fwd-status=304", "stale", asked],
  ["only a date, a login", {}, sid, "fwd=request; detail=cookie", "miss", "says itself that it is for everybody"],
  ["only a date, cookies of the list", {}, ofList, "fwd=stale; fwd-status=304", "stale", "all of them are ignored"],
])("under %s it says what the visitor meets", async (_name, rule, cookie, status, cache, text) => {
  const { got, met } = await metUnder({ default: rule }, cookie);
  expect(got).toBe(`200  ${status}`);
  expect([met.serves, met.cache]).toEqual(["generated", cache]);
  expect(met.text).toContain(text);
}); // prettier-ignore

test("a lone mark at the end is passed on, and said so", async () => {
  const { visitor, why: said } = await bothOf({ backend: { urls: ["http://127.0.0.1:1"] } }, "/a?");
  expect(visitor[0]).toBe(502);
  expect(said).toMatchObject({ cache: "not asked", text: expect.stringContaining("stands alone") });
});

/** What `why` says of what the edge has stored. `change`: of an entry, since then. */
async function saidOf(
  s: Stage,
  url: string,
  {
    site = {},
    change = {},
    aheadMs = 0,
  }: {
    readonly site?: SiteInput;
    readonly change?: Partial<Entry>;
    readonly aheadMs?: number;
  } = {},
) {
  const found = (key: EntryKey) =>
    s.edge.cache
      .find(key)
      .map((entry) => ({ ...entry, ...change, servable: true, softenedS: null }));
  const none = { departures: [], mime: null, clears: [] };
  const keysOf = (keys: readonly EntryKey[]) =>
    keys.map((key) => ({ key, entries: found(key), ...none }));
  const parts = {
    index: {
      why: async (keys: readonly EntryKey[]) => ({ keys: keysOf(keys), clearNo: 0, anew: null }),
      doubt: () => undefined,
    },
    dropsUntil: null,
    state: stateOf(1, { backend: { urls: [s.origin.url] }, ...site }),
    blobsDir: "/nonexistent",
    nowMs: Date.now() + aheadMs,
  };
  return Object(await why(parts, parseUrlArgument(url)));
}

test.each([
  ["http", "redirect", `308 to https://${host}/a?b=1: tls.redirect_http of the devlove`],
  ["https", "generated", asked],
])("what a site wants asked over HTTPS is asked over %s", async (scheme, serves, text) => {
  await using s = await openStage(fresh);
  const site = { tls: { redirect_http: true } };
  const said = await saidOf(s, `${scheme}://${host}/a?b=1`, { site });
  expect(said.a_plain_get).toMatchObject({ serves, text });
  expect(said.url).toBe(`${scheme}://${host}/a?b=1`);
  // Who says none is told of what is served.
  expect((await saidOf(s, `${host}/a?b=1`, { site })).a_plain_get).toMatchObject({ text: asked });
});

test("the redirect of a directory keeps the query", async () => {
  using dir = tempDir();
  const views = { kind: "directory", root: dir.path } as const;
  mkdirSync(join(dir.path, "docs"));
  writeFileSync(join(dir.path, "docs", "index.html"), "");
  await using edge = await openEdge({ site: {}, views });
  const { headers } = await ask(edge, "/docs?page=2");
  expect(headers["location"]).toBe("/docs/?page=2");
  const index = { why: async () => ({ keys: [], clearNo: 0, anew: null }), doubt: () => undefined };
  const state = stateOf(1, {}, views);
  const parts = { index, dropsUntil: null, state, blobsDir: "/nonexistent", nowMs: 0 };
  const said = Object(await why(parts, parseUrlArgument(`http://${host}/docs?page=2`)));
  expect(said.a_plain_get.text).toBe("301 to /docs/?page=2, a directory with an index");
});

test("a file that has changed since the index noted it is no hit", async () => {
  using dir = tempDir();
  const views = { kind: "directory", root: dir.path } as const;
  writeFileSync(join(dir.path, "a.txt"), "one");
  await using edge = await openEdge({ site: {}, views });
  const cacheStatus = async () => (await ask(edge, "/a.txt")).headers["cache-status"];
  const said = async () => {
    const none = { departures: [], mime: null, clears: [] };
    const index = {
      why: async (keys: readonly EntryKey[]) => ({
        keys: keys.map((key) => ({
          key,
          entries: edge.cache
            .find(key)
            .map((entry) => ({ ...entry, servable: true, softenedS: null })),
          ...none,
        })),
        clearNo: 0,
        anew: null,
      }),
      doubt: () => undefined,
    };
    const state = stateOf(1, {}, views);
    const parts = { index, dropsUntil: null, state, blobsDir: "/nonexistent", nowMs: Date.now() };
    return Object(await why(parts, parseUrlArgument(`http://${host}/a.txt`))).a_plain_get.cache;
  };
  expect([await said(), await cacheStatus()]).toEqual(["miss", "accel-agent; fwd=miss"]);
  expect([await said(), await cacheStatus()]).toEqual(["hit", "accel-agent; hit"]);
  writeFileSync(join(dir.path, "a.txt"), "another");
  expect([await said(), await cacheStatus()]).toEqual(["miss", "accel-agent; fwd=miss"]);
});

test("what is stored of a URL answers in its own scheme", async () => {
  await using s = await openStage(fresh);
  await s.get("/a");
  const words = ["http://", "", "https://"].map(async (scheme) => {
    const { a_plain_get: said } = await saidOf(s, `${scheme}${host}/a`);
    return said.cache;
  });
  expect(await Promise.all(words)).toEqual(["hit", "hit", "miss"]);
});

test("what was stored in the future, before the clock was set back, is no hit", async () => {
  await using s = await openStage(fresh);
  await s.get("/a");
  s.edge.skewMs = -60_000;
  const change = { storedAtMs: Date.now() + 60_000 };
  const { a_plain_get: said, cached } = await saidOf(s, `http://${host}/a`, { change });
  expect([said.cache, cached[0].is_fresh]).toEqual(["stale", false]);
  expect(await s.get("/a")).toContain("fwd=stale");
});

test("a file's entry that is left does not answer for the backend", async () => {
  await using s = await openStage(fresh);
  const meta = { status: 200, headers: [], mime: "text/plain", vary: null, digest: "x" };
  const times = { storedAtMs: Date.now(), initialAgeS: 0, freshForS: 60, sourceNo: 0 };
  const key = { domain: host, host, kind: "static", path: "a", query: "" } as const;
  s.edge.cache.noteStatic(key, { ...meta, ...times }, 1);
  const { a_plain_get: said, cached } = await saidOf(s, `http://${host}/a`);
  expect([said.cache, cached.length]).toEqual(["miss", 1]);
  expect(await s.get("/a")).toContain("fwd=uri-miss");
});

test("of several variants the one that fits the request itself is told", async () => {
  await using s = await openStage((_, response) => {
    response.sendDate = false;
    response.writeHead(200, { "Cache-Control": "max-age=60", Vary: "Accept-Language" }).end("x");
  });
  const inGerman = { headers: { "Accept-Language": "de" } };
  await s.get("/a", inGerman);
  const like = (await saidOf(s, `http://${host}/a`)).a_plain_get.cache;
  expect(like).toBe("hit, for requests like the variant");
  expect(await s.get("/a")).toContain("fwd=vary-miss");
  s.edge.skewMs = 61_000;
  await s.get("/a", inGerman);
  const { a_plain_get: said } = await saidOf(s, `http://${host}/a`, { aheadMs: 61_000 });
  expect(said.cache).toBe("stale");
  expect(await s.get("/a")).toContain("fwd=stale");
});

test("a lone mark is told as it was asked", async () => {
  await using s = await openStage(fresh);
  expect((await saidOf(s, `http://${host}/a?`)).url).toBe(`http://${host}/a?`);
});

test.each<[Doubt, string | null, string]>([
  ["to be dropped", "2031-05-06T07:08:09.000Z", "central was restored, and the domain's cache is dropped by 2031-05-06T07:08:09.000Z"],
  ["clears unconfirmed", null, "central has not said that no clear was missed"],
])("what is fresh but %s is no hit, and it says why", async (doubt, dropsUntil, because) => {
  await using s = await openStage(fresh);
  await s.get("/a");
  s.edge.cache.isConfirmed = false;
  const said = await why(
    {
      index: {
        why: async ([, key]) => ({
          keys: s.edge.cache.entries.map((entry) => ({
            key: key ?? entry,
            entries: [{ ...entry, servable: true, softenedS: null }],
            departures: [],
            mime: null,
            clears: [],
          })),
          clearNo: 0,
          anew: null,
        }),
        doubt: () => doubt,
      },
      dropsUntil,
      state: stateOf(1, { backend: { urls: [s.origin.url] } }),
      blobsDir: "/nonexistent",
      nowMs: Date.now(),
    },
    parseUrlArgument(`http://${host}/a`),
  );
  expect(await s.get("/a")).toContain("fwd=stale");
  const { a_plain_get: met, cached } = Object(said);
  expect(met.cache).toBe("unconfirmed, the origin is asked");
  expect(met.text).toContain(because);
  expect(cached).toMatchObject([{ is_fresh: true, servable: true, confirmed: false }]);
}); // prettier-ignore

const hour = 3_600_000;
const inAnHour = (): string => new Date(Date.now() + hour).toISOString();
const everything = { path: "/**", ttl_s: 60 };

test.each<[string, Cache, string, string, string, string]>([
  ["a pause", { paused_until: inAnHour(), default: ttl }, "/a", "fwd=bypass; detail=paused", "not asked", "the devlove pauses the cache"],
  ["a parameter", { rules: [{ path: "/**", match: { query: ["preview"] }, bypass: true }, everything] }, "/a?Preview=1", "fwd=bypass", "not asked", "bypasses the cache"],
  ["no such parameter", { rules: [{ path: "/**", match: { query: ["preview"] }, bypass: true }, everything] }, "/a?b=1", "hit", "hit", asked],
  ["a header that is not there", { rules: [{ path: "/**", match: { header: { "X-A": "*" } }, bypass: true }, everything] }, "/a", "hit", "hit", asked],
  ["headers to vary by", { default: { ...ttl, vary: ["X-A"] } }, "/a", "hit", "hit", asked],
  ["a preset", { presets: [{ name: "woocommerce" }] }, "/cart/", "fwd=bypass", "not asked", "bypasses the cache"],
])("under rules with %s too", async (_name, cache, path, status, isCached, text) => {
  const { got, met } = await metUnder(cache, null, path);
  expect(got).toBe(`200  ${status}`);
  expect([met.serves, met.cache]).toEqual(["generated", isCached]);
  expect(met.text).toContain(text);
}); // prettier-ignore

test("headers of the rule are named without values, and entries of other request headers are told", async () => {
  await using s = await openStage(fresh, { default: { ttl_s: 60 } });
  await s.get("/a");
  const under = (headers: NonNullable<CacheInput["headers"]>) =>
    saidOf(s, `http://${host}/a`, { site: { cache: { default: { ttl_s: 60, headers } } } });
  const answers = await under({ response: { remove: ["X-A"] } });
  expect(answers.rule_headers).toEqual({ response: ["-X-A"], request: [] });
  expect([answers.a_plain_get.cache, answers.cached[0].of_another_rule]).toEqual(["hit", false]);
  const asks = await under({ request: { set: { "X-Key": "secret" }, remove: ["User-Agent"] } });
  expect(asks.rule_headers).toEqual({ response: [], request: ["+X-Key", "-User-Agent"] });
  expect(asks.cached[0].of_another_rule).toBe(true);
  expect(JSON.stringify(asks)).not.toContain("secret");
});

test("rules by media type are listed, and an entry is told under the one of its type", async () => {
  const png = { "Content-Type": "image/png", "Cache-Control": "max-age=600" };
  await using s = await openStage((_q, r) => r.writeHead(200, png).end("p"));
  await s.get("/a");
  const types = { media_type: ["image/*"] };
  const headers = { response: { set: { "X-A": "secret" } } };
  const under = async (rule: CacheInput, rest: CacheInput, aheadMs = 0) => {
    const cache: Cache = { rules: [{ path: "/a", match: types, ...rule }], default: rest };
    return await saidOf(s, `http://${host}/a`, { site: { cache }, aheadMs });
  };
  const said = await under({ ttl_s: 60, headers }, { ttl_s: 600 });
  expect(said.rules_by_media_type).toEqual([
    { ...types, rule_headers: { response: ["+X-A"], request: [] } },
  ]);
  expect(said.cached[0]).toMatchObject({ rule_media_types: ["image/*"], is_fresh: true, for_cookies: false });
  expect(JSON.stringify(said)).not.toContain("secret");
  const late = await under({ ttl_s: 60 }, { ttl_s: 600 }, 100_000);
  expect([late.a_plain_get.cache, late.cached[0].is_fresh]).toEqual(["stale", false]);
  const kept = await under({ ttl_s: 60, stale_while_revalidate_s: 600 }, {}, 100_000);
  expect(kept.cached[0]).toMatchObject({ is_fresh: false, for_cookies: false });
  const other = await saidOf(s, `http://${host}/a`, { site: { cache: { rules: [{ path: "/a", match: { media_type: ["text/*"] }, ttl_s: 60 }] } } });
  expect(other.rules_by_media_type).toEqual([{ media_type: ["text/*"] }]);
  expect(other.cached[0].rule_media_types).toBeUndefined();
}); // prettier-ignore

test("a picture in a listed width is the URL without it, and each response says which forms it may have", async () => {
  const size = 5_000;
  const types: Readonly<Record<string, string>> = {
    "/a.jpg": "image/jpeg",
    "/b.avif": "image/avif",
    "/c.gif": "image/gif",
    "/page": "text/html",
  };
  await using s = await openStage((q, r) =>
    r
      .writeHead(200, { "Content-Type": types[q.url ?? ""], "Cache-Control": "max-age=600" })
      .end(Buffer.alloc(size)),
  );
  const images = { optimize: true, widths: [320, 640] };
  const under = async (path: string, site: SiteInput) => {
    await s.get(path.replace(/\?.*/, ""));
    return await saidOf(s, `http://${host}${path}`, { site });
  };
  const said = await under("/a.jpg?width=640", { images });
  expect(said).toMatchObject({
    url: `http://${host}/a.jpg?width=640`,
    picture_width: 640,
    a_plain_get: { cache: "hit" },
    cached: [{ path: "/a.jpg", query: "", image_variants: "avif, webp; widths 320, 640" }],
  });
  const wordOf = async (path: string, site: SiteInput): Promise<unknown> =>
    (await under(path, site)).cached.find((one: { path: string }) => one.path === path)
      ?.image_variants;
  expect(await wordOf("/b.avif", { images })).toBe("widths 320, 640");
  expect(await wordOf("/b.avif", { images: { optimize: true } })).toMatch(/^none: its format/);
  expect(await wordOf("/c.gif", { images })).toMatch(/^none: its media type/);
  expect(await wordOf("/page", { images })).toBeUndefined();
  expect(await wordOf("/a.jpg", {})).toBeUndefined();
  const cache = { default: { vary: ["Accept"] } };
  expect(await wordOf("/a.jpg", { images, cache })).toMatch(/^none: the rule tells answers apart/);
  const unlisted = await saidOf(s, `http://${host}/a.jpg?width=641`, { site: { images } });
  expect(unlisted.picture_width).toBeUndefined();
});
