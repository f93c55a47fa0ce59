// Fetches that no visitor waits for (stale-while-revalidate): for the whole, one at a time, nobody's credentials, never shared or stored over a clear.

import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import type { CacheInput } from "../../../../src/core/serving/effective-devlove.ts";
import { until } from "../../../support/until.ts";
import { ask } from "../edge.ts";
import { fresh, openStage } from "../stage.ts";

const lasting = { "Cache-Control": "max-age=60" };

const isTagged = (fields: readonly (readonly [string, string])[]): boolean =>
  fields.some(([name]) => name === "ETag");

describe("what is fetched behind the visitors' back", () => {
  const rule: CacheInput = { stale_while_revalidate_s: 100 };

  /** One stored answer that is stale by now; the next are the test's to give. */
  async function openStale(cache: CacheInput = rule) {
    const held: ServerResponse[] = [];
    const stage = await openStage(
      (q, r, n) => {
        if (n === 1) fresh(q, r, n);
        else held.push(r);
      },
      { default: cache },
    );
    await stage.get("/a");
    stage.edge.skewMs = 90_000;
    return { stage, next: async (n: number) => until("the refresh", () => held[n]), held };
  }

  it.each([
    ["a part", { range: "bytes=0-0" }, "206 v hit"],
    ["a part if unchanged", { range: "bytes=0-0", "if-range": '"v1"' }, "206 v hit"],
    ["what may have changed", { "if-none-match": '"v1"' }, "304  hit"],
  ])("is the whole where the visitor asks for %s", async (_name, headers, told) => {
    await using s = await openStage(
      (_q, r, n) => {
        r.sendDate = false;
        const { ETag, ...rest } = { ...lasting, ETag: `"v${n}"` };
        // Without anything to ask by, later ones.
        r.writeHead(200, n === 1 ? { ...rest, ETag } : rest).end(`v${n}`);
      },
      { default: rule },
    );
    await s.get("/a");
    s.edge.skewMs = 90_000;
    expect(await s.get("/a", { headers })).toBe(told);
    await until("the refresh", () => s.edge.cache.entries.some(({ headers: h }) => !isTagged(h)));
    expect([s.seen[1]?.headers.range, s.seen[1]?.headers["if-range"]]).toEqual([
      undefined,
      undefined,
    ]);
    expect(await s.get("/a")).toBe("200 v2 hit");
    s.edge.skewMs = 180_000;
    expect(await s.get("/a", { headers: { range: "bytes=1-1" } })).toBe("206 2 hit");
    await until("the refresh of what has no validator", () => s.edge.cache.entries.length === 3);
    expect(s.seen[2]?.headers.range).toBe(undefined);
  });

  it.each([
    ["credentials", { authorization: "x" }],
    ["the wish that nothing be kept", { "cache-control": "no-store" }],
  ])("is nothing where the visitor has %s", async (_name, headers) => {
    await using s = await openStage(
      (_q, r, n) => {
        r.sendDate = false;
        r.writeHead(200, { "Cache-Control": "max-age=60, public" }).end(`v${n}`);
      },
      { default: rule },
    );
    await s.get("/a");
    s.edge.skewMs = 90_000;
    expect(await s.get("/a", { headers })).toBe("200 v1 hit");
    expect(await s.get("/a")).toBe("200 v1 hit");
    await until("the refresh", () => s.edge.cache.entries.length === 2);
    expect(s.seen.map(({ headers: seen }) => seen.authorization)).toEqual([undefined, undefined]);
  });

  it.each<[string, number, Record<string, string>]>([
    ["private", 200, { "Cache-Control": "private, max-age=60" }],
    ["no-store", 200, { "Cache-Control": "no-store" }],
    ["the word that the page is gone", 404, {}],
  ])("is nobody's where it is %s, and ends what is stored", async (_name, status, headers) => {
    const { stage, next } = await openStale();
    await using s = stage;
    expect(await s.get("/a", { headers: { cookie: "session=1" } })).toBe("200 v1 hit");
    (await next(0)).writeHead(status, headers).end("of session 1");
    await until("the end", () => s.edge.cache.entries.length === 0);
    const own = ask(s.edge, "/a", { headers: { cookie: "session=2" } });
    (await next(1)).writeHead(status, headers).end("of session 2");
    expect([(await own).status, (await own).text]).toEqual([status, "of session 2"]);
    expect(s.edge.cache.entries).toEqual([]);
  });

  it("is nobody's where it has a cookie, of which the others' answer knows nothing", async () => {
    const headers = { ...lasting, "Set-Cookie": "session=1" };
    const { stage, next } = await openStale();
    await using s = stage;
    expect(await s.get("/a", { headers: { cookie: "session=1" } })).toBe("200 v1 hit");
    (await next(0)).writeHead(200, headers).end("of session 1");
    const started = until("another", async () => {
      expect(await s.get("/a", { headers: { cookie: "session=2" } })).toBe("200 v1 hit");
      return s.seen.length > 2;
    });
    await started;
    (await next(1)).end();
    expect(s.edge.cache.entries.map(({ size }) => size)).toEqual([2]);
    // Whoever has to wait for an answer gets his own.
    s.edge.skewMs = 165_000;
    const own = ask(s.edge, "/a", { headers: { cookie: "session=2" } });
    (await next(2)).writeHead(200, headers).end("of session 2");
    expect((await own).text).toBe("of session 2");
  });

  it("is not stored and not shared when it was asked for before a clear", async () => {
    const { stage, next } = await openStale();
    await using s = stage;
    expect(await s.get("/a")).toBe("200 v1 hit");
    const old = await next(0);
    s.edge.cache.clear(() => true);
    const after = ask(s.edge, "/a");
    (await next(1)).writeHead(200, lasting).end("new");
    old.writeHead(200, lasting).end("old");
    expect((await after).text).toBe("new");
    await until("both are done", () => s.edge.cache.outcomes.length === 3);
    expect(s.edge.cache.outcomes.map(({ kind }) => kind).sort()).toEqual([
      "blocked",
      "stored",
      "stored",
    ]);
    expect((await ask(s.edge, "/a")).text).toBe("new");
  });

  it("keeps the number of its source when it is confirmed, so that a clear since then hits it", async () => {
    const { stage, next } = await openStale();
    await using s = stage;
    const [before] = s.edge.cache.entries;
    expect(await s.get("/a")).toBe("200 v1 hit");
    const response = await next(0);
    s.edge.cache.clear(({ path }) => path === "/elsewhere");
    response.writeHead(304, { ...lasting, ETag: '"v1"' }).end();
    await until("it is confirmed", () => s.edge.cache.refreshed === 1);
    expect(await s.get("/a")).toBe("200 v1 hit");
    const [entry] = s.edge.cache.entries;
    expect([entry?.id, entry?.sourceNo]).toEqual([before?.id, before?.sourceNo]);
    expect(entry?.storedAtMs).toBeGreaterThan(before?.storedAtMs ?? Infinity);
  });

  it("does not prolong a confirmation that comes after the clear", async () => {
    const { stage, next, held } = await openStale();
    await using s = stage;
    expect(await s.get("/a")).toBe("200 v1 hit");
    const response = await next(0);
    s.edge.cache.clear(() => true);
    response.writeHead(304, { ...lasting, ETag: '"v1"' }).end();
    const after = ask(s.edge, "/a");
    (await next(1)).writeHead(200, lasting).end("new");
    expect((await after).text).toBe("new");
    expect(held.length).toBe(2);
    expect(s.edge.cache.refreshed).toBe(0);
  });

  it("is no more than an origin can bear: one at a time", async () => {
    const { stage, next, held } = await openStale();
    await using s = stage;
    for (let n = 0; n < 20; n++) expect(await s.get("/a")).toBe("200 v1 hit");
    (await next(0)).destroy();
    await until("the next", async () => {
      await s.get("/a");
      return held.length === 2;
    });
    expect(await s.get("/a")).toBe("200 v1 hit");
    expect(s.seen.length).toBe(3);
  });
});
