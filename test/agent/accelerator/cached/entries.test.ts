// Stored answers: served while they may be, in part where that was asked for, and never after a clear.

import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { until } from "../../../support/until.ts";
import { ask, host, openEdge, openOrigin } from "../edge.ts";
import { fresh, openStage } from "../stage.ts";

describe("clearing", () => {
  it("makes a miss of the next request", async () => {
    await using s = await openStage(fresh);
    await s.get("/a");
    s.edge.cache.clear(() => true);
    expect(await s.get("/a")).toBe("200 v2 fwd=uri-miss; stored");
  });

  it("while the body is opened is seen before the head goes out", async () => {
    await using s = await openStage(fresh);
    await s.get("/a");
    s.edge.cache.whileOpening = () => s.edge.cache.clear(() => true);
    expect(await s.get("/a")).toContain("200 v2 fwd=uri-miss");
  });

  it("while the origin is asked keeps the answer out of the cache", async () => {
    const held: ServerResponse[] = [];
    await using s = await openStage((_q, r) => void held.push(r));
    const first = s.get("/a");
    const response = await until("the origin is asked", () => held[0]);
    s.edge.cache.clear(() => true);
    response.writeHead(200, { "Cache-Control": "max-age=60" }).end("old");
    expect(await first).toBe("200 old fwd=uri-miss");
    expect(s.edge.cache.outcomes).toEqual([{ kind: "blocked" }]);
    expect(s.edge.cache.entries).toEqual([]);
  });

  it("is heeded by the head of each who shares the fetch", async () => {
    const held: ServerResponse[] = [];
    await using s = await openStage((_q, r) => void held.push(r));
    const all = [s.get("/a"), s.get("/a"), s.get("/a")];
    const response = await until("the origin is asked", () => held[0]);
    await s.letIn(3);
    s.edge.cache.clear(() => true);
    response.writeHead(200, { "Cache-Control": "max-age=60" }).end("old");
    expect((await Promise.all(all)).filter((told) => told.includes("stored"))).toEqual([]);
  });

  it("that leaves no index to store in is heeded by the head", async () => {
    await using s = await openStage(fresh);
    s.edge.cache.takesBodies = false;
    expect(await s.get("/a")).toBe("200 v1 fwd=uri-miss");
  });

  it("of another URL lets the answer be stored, which then says so", async () => {
    const held: ServerResponse[] = [];
    await using s = await openStage((_q, r) => void held.push(r));
    const first = s.get("/a");
    const response = await until("the origin is asked", () => held[0]);
    s.edge.cache.clear(({ path }) => path === "/b");
    response.writeHead(200, { "Cache-Control": "max-age=60" }).end("v1");
    expect(await first).toBe("200 v1 fwd=uri-miss; stored");
    expect(await s.get("/a")).toBe("200 v1 hit");
  });

  it("not yet confirmed to be all known: entries are fetched anew", async () => {
    await using s = await openStage(fresh);
    await s.get("/a");
    s.edge.cache.isConfirmed = false;
    expect(await s.get("/a")).toBe("200 v2 fwd=stale; stored");
    s.edge.cache.isConfirmed = true;
    expect(await s.get("/a")).toBe("200 v2 hit");
  });

  it.each([
    ["POST", 200, "v3 fwd=uri-miss; stored"],
    ["DELETE", 204, "v3 fwd=uri-miss; stored"],
    ["PUT", 302, "v3 fwd=uri-miss; stored"],
    ["POST", 500, "v1 hit"],
    ["OPTIONS", 200, "v1 hit"],
  ])("by a %s answered %d", async (method, status, then) => {
    await using s = await openStage((q, r, n) =>
      q.method === "GET" ? fresh(q, r, n) : r.writeHead(status).end(),
    );
    await s.get("/a");
    await ask(s.edge, "/a", { method });
    expect(await s.get("/a")).toBe(`200 ${then}`);
  });
});

describe("conditions and ranges", () => {
  it("are answered from the entry", async () => {
    await using s = await openStage(fresh);
    await s.get("/a");
    const get = (headers: Record<string, string>) => ask(s.edge, "/a", { headers });
    const notModified = await get({ "if-none-match": '"v1"' });
    expect(notModified).toMatchObject({
      status: 304,
      text: "",
      headers: { etag: '"v1"', age: "0" },
    });
    expect(notModified.headers["content-type"]).toBeUndefined();
    expect(await get({ "if-none-match": '"v0"' })).toMatchObject({ status: 200, text: "v1" });
    expect(await get({ range: "bytes=1-" })).toMatchObject({
      status: 206,
      text: "1",
      headers: { "content-range": "bytes 1-1/2" },
    });
    expect(await get({ range: "bytes=2-" })).toMatchObject({ status: 416, text: "" });
    expect((await ask(s.edge, "/a", { method: "HEAD" })).status).toBe(200);
    expect(s.seen.length).toBe(1);
    // Whatever the answer is, the entry was used.
    const [{ id } = { id: 0 }] = s.edge.cache.entries;
    expect(s.edge.cache.usedIds).toEqual(Array.from({ length: 5 }, () => id));
    expect(s.edge.cache.awaited).toEqual([false]);
  });

  it("refused with 416 have nothing of the head that is about the whole", async () => {
    const site: SiteInput = { headers: { set: { "Cache-Control": "max-age=9", "X-Set": "1" } } };
    await using origin = await openOrigin((_q, r) => {
      const cors = { "Access-Control-Allow-Origin": "*", Expires: new Date(0).toUTCString() };
      r.writeHead(200, { "Cache-Control": "max-age=60", ETag: '"1"', ...cors }).end("0123");
    });
    await using edge = await openEdge({ site: { ...site, backend: { urls: [origin.url] } } });
    await ask(edge, "/a");
    const { status, headers } = await ask(edge, "/a", { headers: { range: "bytes=4-" } });
    expect(status).toBe(416);
    expect(headers).toMatchObject({
      "access-control-allow-origin": "*",
      "cache-control": "no-store",
      "content-length": "0",
      "content-range": "bytes */4",
      "x-set": "1",
    });
    for (const name of ["etag", "expires", "content-type"]) expect(headers[name]).toBeUndefined();
  });

  it("are answered from an entry that comes in pieces", async () => {
    const body = "0123456789".repeat(10);
    await using s = await openStage((_q, r) =>
      r.writeHead(200, { "Cache-Control": "max-age=60" }).end(body),
    );
    s.edge.cache.streams = true;
    await s.get("/a");
    expect((await ask(s.edge, "/a")).text).toBe(body);
    const part = await ask(s.edge, "/a", { headers: { range: "bytes=5-44" } });
    expect([part.status, part.text]).toEqual([206, body.slice(5, 45)]);
  });

  it("of a visitor do not keep the whole from being fetched and stored", async () => {
    await using s = await openStage(fresh);
    const first = await ask(s.edge, "/a", { headers: { "if-none-match": '"v1"' } });
    expect(first).toMatchObject({ status: 304, text: "", headers: { etag: '"v1"' } });
    expect(s.seen[0]?.headers["if-none-match"]).toBeUndefined();
    await until("the entry", () => s.edge.cache.entries.length === 1);
    expect(await s.get("/a")).toBe("200 v1 hit");
  });

  it("that the origin answers in part are passed on and not stored", async () => {
    await using s = await openStage((q, r) =>
      q.headers.range === undefined
        ? r.writeHead(200, { "Cache-Control": "max-age=60" }).end("0123")
        : r
            .writeHead(206, { "Cache-Control": "max-age=60", "Content-Range": "bytes 1-2/4" })
            .end("12"),
    );
    expect(await s.get("/a", { headers: { range: "bytes=1-2" } })).toBe(
      "206 12 fwd=uri-miss; detail=status",
    );
    expect(s.edge.cache.entries).toEqual([]);
  });

  it("only-if-cached asks nobody", async () => {
    await using s = await openStage(fresh);
    const headers = { "cache-control": "only-if-cached" };
    expect((await ask(s.edge, "/a", { headers })).status).toBe(504);
    await s.get("/a");
    expect(await s.get("/a", { headers })).toBe("200 v1 hit");
    expect(s.seen.length).toBe(1);
  });

  it("only-if-cached asks nobody where the cache has no part in it either", async () => {
    await using s = await openStage(fresh, { rules: [{ path: "/cart/**", bypass: true }] });
    const headers = { "cache-control": "only-if-cached" };
    for (const path of ["/cart/a", "/a?"])
      expect((await ask(s.edge, path, { headers })).status).toBe(504);
    expect(s.seen.length).toBe(0);
    expect((await ask(s.edge, "/cart/a", { headers, method: "POST" })).status).toBe(200);
  });
});

describe("the port", () => {
  it("is a part of what was asked for where it is not the scheme's own", async () => {
    await using s = await openStage((q, r) => {
      const Location = `http://${q.headers.host}/login`;
      r.writeHead(301, { "Cache-Control": "max-age=60", Location }).end();
    });
    const get = async (asked: string): Promise<string> => {
      const { headers } = await ask(s.edge, "/", { host: asked });
      const isHit = headers["cache-status"]?.includes("hit") === true;
      return `${headers["location"]}${isHit ? " hit" : ""}`;
    };
    const odd = `${host}:${s.edge.port}`;
    expect(await get(odd)).toBe(`http://${odd}/login`);
    expect(await get(host)).toBe(`http://${host}/login`);
    // One that was not connected to is not believed.
    expect(await get(`${host}:9999`)).toBe(`http://${host}/login hit`);
    expect(await get(odd)).toBe(`http://${odd}/login hit`);
    expect(s.edge.cache.entries.length).toBe(2);
    s.edge.cache.clear(({ path }) => path === "/");
    expect(s.edge.cache.entries).toEqual([]);
  });
});

describe("the scheme", () => {
  it("is a part of what was asked for", async () => {
    await using origin = await openOrigin((q, r) => {
      r.writeHead(200, { "Cache-Control": "max-age=60" });
      r.end(`links to ${q.headers["x-forwarded-proto"]?.toString()}`);
    });
    const site = { backend: { urls: [origin.url] } };
    await using edge = await openEdge({ site, trusted: ["127.0.0.1"] });
    const get = async (proto: string): Promise<string> =>
      (await ask(edge, "/", { headers: { "x-forwarded-proto": proto } })).text;
    expect(await get("https")).toBe("links to https");
    expect(await get("http")).toBe("links to http");
    expect(await get("https")).toBe("links to https");
    expect(edge.cache.entries.length).toBe(2);
  });
});

describe("what the store is told of a fetch", () => {
  it("is when the answer can have been made at the earliest, by its Age, and the rule's lifetime", async () => {
    const answers: readonly Record<string, string>[] = [{}, { Age: "30" }, { Age: "soon" }];
    const rules = { rules: [{ path: "/**", ttl_s: 120 }] };
    await using s = await openStage((_q, r, n) => {
      r.writeHead(200, { "Cache-Control": "max-age=60", ...answers[n - 1] }).end("v");
    }, rules);
    const began = Date.now() - 1_000;
    for (const path of ["/a", "/b", "/c"]) await s.get(path);
    const ended = Date.now() + 1_000;
    const [now, aged, unclear] = s.edge.cache.fetched;
    expect(now).toMatchObject({
      isAwaited: false,
      lifetimes: { ttl_s: 120, negative_ttl_s: null, override: [] },
    });
    expect(now?.madeAfterMs).toBeGreaterThanOrEqual(began);
    expect(now?.madeAfterMs).toBeLessThanOrEqual(ended);
    expect(aged?.madeAfterMs).toBeGreaterThanOrEqual(began - 30_000);
    expect(aged?.madeAfterMs).toBeLessThanOrEqual(ended - 30_000);
    expect(unclear?.madeAfterMs).toBe(-Infinity);
  });
});
