// Answers of an origin: stored where they may be, in variants, and not when anything about them fails.

import { describe, expect, it } from "vitest";
import type { CacheInput } from "../../../../src/core/serving/effective-devlove.ts";
import { formatHttpDate } from "../../../../src/core/http/http-date.ts";
import { until } from "../../../support/until.ts";
import { ask, type Asked } from "../edge.ts";
import { fresh, openStage, type Handler } from "../stage.ts";

describe("storing", () => {
  it("makes a hit of the second request, with its age", async () => {
    await using s = await openStage(fresh);
    expect(await s.get("/a?x=1")).toBe("200 v1 fwd=uri-miss; stored");
    s.edge.skewMs = 10_500;
    const hit = await ask(s.edge, "/a?x=1");
    expect(hit).toMatchObject({ status: 200, text: "v1" });
    expect(hit.headers).toMatchObject({
      age: "10",
      "cache-status": "accel-agent; hit; ttl=50",
      "content-length": "2",
      "content-type": "text/plain",
    });
    expect(await s.get("/a?x=2")).toBe("200 v2 fwd=uri-miss; stored");
    expect(s.edge.cache.entries).toMatchObject([
      { kind: "generated", path: "/a", query: "x=1", mime: "text/plain", size: 2, digest: null },
      { kind: "generated", path: "/a", query: "x=2" },
    ]);
  });

  it("ends when the answer is no longer fresh", async () => {
    await using s = await openStage(fresh);
    await s.get("/a");
    s.edge.skewMs = 60_000;
    expect(await s.get("/a")).toBe("200 v2 fwd=stale; stored");
    expect(await s.get("/a")).toBe("200 v2 hit");
  });

  it.each<[string, Handler, Asked]>([
    ["nothing said", (_q, r) => r.end("x"), {}],
    [
      "private",
      (_q, r) => r.writeHead(200, { "Cache-Control": "private, max-age=9" }).end("x"),
      {},
    ],
    [
      "Set-Cookie",
      (_q, r) => r.writeHead(200, { "Cache-Control": "max-age=9", "Set-Cookie": "a=b" }).end("x"),
      {},
    ],
    ["404 that says nothing", (_q, r) => r.writeHead(404).end("x"), {}],
    [
      "Vary *",
      (_q, r) => r.writeHead(200, { "Cache-Control": "max-age=9", Vary: "*" }).end("x"),
      {},
    ],
    ["Authorization", fresh, { headers: { authorization: "Basic eA==" } }],
    ["request no-store", fresh, { headers: { "cache-control": "no-store" } }],
    ["POST", fresh, { method: "POST" }],
    ["a GET with a body", fresh, { body: "x=1", headers: { "content-length": "3" } }],
    ["HEAD", fresh, { method: "HEAD" }],
  ])("does not happen: %s", async (_name, handler, asked) => {
    await using s = await openStage(handler);
    await ask(s.edge, "/a", asked);
    await ask(s.edge, "/a", asked);
    expect(s.seen.length).toBe(2);
    expect(s.edge.cache.entries).toEqual([]);
  });

  it.each([
    ["private; max-age=0", "private"],
    ["no-cache; no-store; must-revalidate", "no-store"],
    ["private max-age=0", "private"],
  ])(
    "does not happen under a rule to what says, in a spelling of its own: %s",
    async (said, reason) => {
      const handler: Handler = (q, r) =>
        r
          .writeHead(200, { "Cache-Control": said, ETag: '"1"' })
          .end(`of ${String(q.headers["x-visitor"])}`);
      await using s = await openStage(handler, { default: { ttl_s: 60, stale_if_error_s: 60 } });
      for (const visitor of ["one", "another"])
        expect(await s.get("/a", { headers: { "x-visitor": visitor } })).toBe(
          `200 of ${visitor} fwd=uri-miss; detail=${reason}`,
        );
      expect(s.edge.cache.entries).toEqual([]);
    },
  );

  it.each([
    [416, "status"],
    [400, "range"],
  ])("does not happen to a refused range (%i)", async (status, reason) => {
    await using s = await openStage((q, r, n) => {
      const head = { "Cache-Control": "max-age=60" };
      if (q.headers.range === undefined) r.writeHead(200, head).end(`v${n}`);
      else r.writeHead(status, head).end("no such part");
    });
    const headers = { range: "bytes=99-" };
    expect(await s.get("/a", { headers })).toBe(
      `${status} no such part fwd=uri-miss; detail=${reason}`,
    );
    expect(await s.get("/a")).toBe("200 v2 fwd=uri-miss; stored");
    expect(s.edge.cache.entries).toMatchObject([{ status: 200 }]);
  });

  it("does not happen where the query is a lone question mark, which is not the URL without it", async () => {
    await using s = await openStage((q, r, n) => {
      const head = { "Cache-Control": "max-age=60" };
      if (q.url === "/a?") r.writeHead(301, { ...head, Location: "/a" }).end();
      else r.writeHead(200, head).end(`v${n} of ${q.url}`);
    });
    expect(await s.get("/a?")).toBe("301  fwd=request");
    expect(await s.get("/a")).toBe("200 v2 of /a fwd=uri-miss; stored");
    expect(await s.get("/a?")).toBe("301  fwd=request");
    expect(s.seen.map(({ url }) => url)).toEqual(["/a?", "/a", "/a?"]);
    expect(await s.get("/a")).toBe("200 v2 of /a hit");
  });

  it("never answers a request with Authorization from the cache", async () => {
    await using s = await openStage(fresh);
    await s.get("/a");
    expect(await s.get("/a", { headers: { authorization: "x" } })).toBe(
      "200 v2 fwd=request; detail=authorization",
    );
    expect(await s.get("/a", { method: "HEAD" })).toBe("200  hit");
  });

  it("follows the rules of the site", async () => {
    const rules: (CacheInput & { path: string })[] = [
      { path: "/live/**", bypass: true },
      { path: "/hour/**", ttl_s: 3600, query: { ignore: ["utm_*"] } },
    ];
    await using s = await openStage((_q, r, n) => r.end(`v${n}`), { rules });
    expect(await s.get("/live/a")).toBe("200 v1 fwd=bypass");
    expect(await s.get("/hour/a?b=1&utm_source=x")).toBe("200 v2 fwd=uri-miss; stored");
    expect(await s.get("/hour/a?utm_medium=y&b=1")).toBe("200 v2 hit");
    expect(s.seen.at(-1)?.url).toBe("/hour/a?b=1&utm_source=x");
  });

  it("strips cookies where the rule says so, and only then", async () => {
    const withCookie: Handler = (_q, r, n) =>
      r.writeHead(200, { "Set-Cookie": ["a=1", "b=2"] }).end(`v${n}`);
    const rules = [{ path: "/x", ttl_s: 9, ignore_set_cookie: true }];
    await using s = await openStage(withCookie, { rules });
    expect((await ask(s.edge, "/x")).headers["set-cookie"]).toBeUndefined();
    expect((await ask(s.edge, "/x")).headers["set-cookie"]).toBeUndefined();
    const { rawHeaders } = await ask(s.edge, "/y");
    expect(rawHeaders.filter((_, i) => rawHeaders[i - 1]?.toLowerCase() === "set-cookie")).toEqual([
      "a=1",
      "b=2",
    ]);
    expect(s.seen.length).toBe(2);
  });
});

describe("variants", () => {
  it("answer requests with the same fields only", async () => {
    await using s = await openStage((q, r, n) =>
      r
        .writeHead(200, { "Cache-Control": "max-age=60", Vary: "Accept-Language" })
        .end(`v${n} ${q.headers["accept-language"]}`),
    );
    const get = (language: string) => s.get("/a", { headers: { "accept-language": language } });
    expect(await get("de")).toBe("200 v1 de fwd=uri-miss; stored");
    expect(await get("en")).toBe("200 v2 en fwd=vary-miss; stored");
    expect(await get("de")).toBe("200 v1 de hit");
    expect(await get("en")).toBe("200 v2 en hit");
  });

  it("are few: codings are asked for in one spelling", async () => {
    await using s = await openStage((q, r) =>
      r
        .writeHead(200, { "Cache-Control": "max-age=60", "Content-Encoding": "gzip" })
        .end(`coded for ${q.headers["accept-encoding"]}`),
    );
    const get = (codings: string) => s.get("/a", { headers: { "accept-encoding": codings } });
    expect(await get("deflate, gzip;q=0.9, br")).toBe(
      "200 coded for br, gzip fwd=uri-miss; stored",
    );
    expect(await get("br, gzip")).toBe("200 coded for br, gzip hit");
    // Without Vary, and yet a visitor who takes no gzip is not given the stored one.
    expect(await get("identity")).toBe("200 coded for undefined fwd=vary-miss; stored");
  });
});

describe("what fails", () => {
  it("in the store harms no answer", async () => {
    await using s = await openStage(fresh);
    s.edge.cache.takesChunks = false;
    s.edge.cache.takesBodies = false; // Known before the first of them, and so not called stored.
    expect(await s.get("/a")).toBe("200 v1 fwd=uri-miss");
    expect(s.edge.cache.aborted).toBe(1);
    expect(s.edge.cache.entries).toEqual([]);
  });

  it("in the origin's body breaks the answer and is not stored", async () => {
    await using s = await openStage((_q, r) => {
      r.writeHead(200, { "Cache-Control": "max-age=60", "Content-Length": "10" });
      r.write("01234");
      setImmediate(() => r.destroy());
    });
    await expect(ask(s.edge, "/a")).rejects.toThrow(/aborted|socket hang up|ECONNRESET/);
    await until("the end", () => s.edge.cache.aborted === 1);
    expect(s.edge.cache.entries).toEqual([]);
  });

  it("in a chunked body is seen too", async () => {
    await using s = await openStage((_q, r) => {
      r.writeHead(200, { "Cache-Control": "max-age=60" });
      r.write("01234");
      setImmediate(() => r.destroy());
    });
    await expect(ask(s.edge, "/a")).rejects.toThrow(/aborted|socket hang up|ECONNRESET/);
    await until("the end", () => s.edge.cache.aborted === 1);
    expect(s.edge.cache.entries).toEqual([]);
  });

  it("to be delimited is passed on and not stored", async () => {
    await using s = await openStage((q, r) => {
      r.shouldKeepAlive = false;
      r.useChunkedEncodingByDefault = false;
      q.socket.end(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nConnection: close\r\n\r\nuntil the end",
      );
    });
    expect(await s.get("/a")).toBe("200 until the end fwd=uri-miss; detail=no-length");
    expect(s.edge.cache.entries).toEqual([]);
  });
});

describe("an answer of an origin", () => {
  it("without content has no length", async () => {
    await using s = await openStage((_q, r) => {
      const socket = r.socket;
      socket?.end(
        "HTTP/1.1 204 No Content\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n\r\n",
      );
    });
    for (const method of ["GET", "GET", "HEAD", "POST"]) {
      const { status, headers } = await ask(s.edge, "/a", { method });
      expect([status, headers["content-length"]]).toEqual([204, undefined]);
    }
  });

  it("that is a 304 nobody asked for is none", async () => {
    const handler: Handler = (_q, r) => r.writeHead(304, { "Cache-Control": "max-age=60" }).end();
    await using s = await openStage(handler, { rules: [{ path: "/cart", bypass: true }] });
    const get = async (path: string, asked?: Asked): Promise<number> =>
      (await ask(s.edge, path, asked)).status;
    expect(await get("/a")).toBe(502);
    expect(await get("/a", { method: "HEAD" })).toBe(502);
    expect(await get("/cart")).toBe(502);
    expect(await get("/cart", { headers: { "if-none-match": '"1"' } })).toBe(304);
  });
});

describe("what is stored", () => {
  it("is as received, without what belongs to a connection", async () => {
    await using s = await openStage((_q, r) =>
      r
        .writeHead(200, {
          "Cache-Control": "max-age=60",
          Connection: "x-hop",
          "X-Hop": "1",
          "X-Kept": ["1", "2"],
          Age: "3",
          "X-Accel-Decision": "forged",
          Date: formatHttpDate(Date.now()),
        })
        .end("x"),
    );
    const first = await ask(s.edge, "/a");
    expect(first.headers["x-hop"]).toBeUndefined();
    expect(first.headers["x-accel-decision"]).toBeUndefined();
    expect(first.headers["age"]).toBe("3");
    const [entry] = s.edge.cache.entries;
    expect(entry?.headers.map(([name]) => name.toLowerCase()).sort()).toEqual([
      "cache-control",
      "date",
      "x-kept",
      "x-kept",
    ]);
    expect(entry?.initialAgeS).toBe(3);
    expect((await ask(s.edge, "/a")).headers["age"]).toBe("3");
  });
});
