// Stored responses that have to be asked about: by 304, by HEAD, by the visitor's directives; what unsafe methods invalidate.

import { describe, expect, it } from "vitest";
import { until } from "../../../support/until.ts";
import { ask } from "../edge.ts";
import { fresh, openStage, type Handler } from "../stage.ts";

/** Says 304 to whoever has the tag, from the second request on. */
const confirming =
  (headers: Record<string, string> = {}): Handler =>
  (q, r, n) => {
    r.sendDate = false;
    const isKnown = q.headers["if-none-match"] === '"e"';
    const all = { "Cache-Control": "max-age=60", ETag: '"e"', ...headers, "X-No": `${n}` };
    r.writeHead(isKnown ? 304 : 200, all).end(isKnown ? undefined : `v${n}`);
  };

describe("a stale response", () => {
  it("that the origin confirms is used again, with its new head", async () => {
    await using s = await openStage(confirming());
    await s.get("/a");
    s.edge.skewMs = 61_000;
    const confirmed = await ask(s.edge, "/a");
    expect([confirmed.status, confirmed.text, confirmed.headers["x-no"]]).toEqual([200, "v1", "2"]);
    expect(confirmed.headers["cache-status"]).toBe(
      "accel-agent; fwd=stale; fwd-status=304; ttl=60",
    );
    expect(await s.get("/a")).toBe("200 v1 hit");
    expect(s.edge.cache.entries.length).toBe(1);
    expect(s.edge.cache.refreshed).toBe(1);
  });

  it("that the origin confirms for many at once is asked about once", async () => {
    const { promise: allAsk, resolve } = Promise.withResolvers<void>();
    await using s = await openStage((q, r, n) => {
      void (n === 1 ? Promise.resolve() : allAsk).then(() => confirming()(q, r, n));
    });
    await s.get("/a");
    s.edge.skewMs = 61_000;
    const asking = Promise.all(Array.from({ length: 6 }, async () => ask(s.edge, "/a")));
    await s.letIn(7);
    resolve();
    const answers = await asking;
    expect(answers.map(({ text }) => text)).toEqual(answers.map(() => "v1"));
    expect(s.seen.length).toBe(2);
  });

  it("is judged by the visitor's conditions after that", async () => {
    await using s = await openStage(confirming());
    await s.get("/a");
    s.edge.skewMs = 61_000;
    const own = await ask(s.edge, "/a", { headers: { "if-none-match": '"e", "x"' } });
    expect([own.status, own.text]).toEqual([304, ""]);
    expect(s.seen[1]?.headers["if-none-match"]).toBe('"e"');
    s.edge.skewMs = 122_000;
    const part = await ask(s.edge, "/a", { headers: { range: "bytes=1-" } });
    expect([part.status, part.text]).toEqual([206, "1"]);
    expect(s.seen[2]?.headers.range).toBeUndefined();
  });

  it("cleared while it is asked about is fetched anew", async () => {
    await using s = await openStage((q, r, n) => {
      if (n === 2) s.edge.cache.clear(() => true);
      confirming()(q, r, n);
    });
    await s.get("/a");
    s.edge.skewMs = 61_000;
    expect(await s.get("/a")).toBe("200 v3 fwd=uri-miss; stored");
    expect(s.edge.cache.entries).toMatchObject([{ sourceNo: 1 }]);
  });

  it.each<[string, Record<string, string>, number, string]>([
    ["that has become private is dropped, and", { "Cache-Control": "private" }, 0, "private"],
    [
      "that is confirmed with a cookie stays, but the cookie's answer is fetched:",
      { "Set-Cookie": "a=b" },
      1,
      "set-cookie",
    ],
  ])("%s only its visitor gets it", async (_name, change, left, reason) => {
    await using s = await openStage((q, r, n) => confirming(n === 1 ? {} : change)(q, r, n));
    await s.get("/a");
    s.edge.skewMs = 61_000;
    expect(await s.get("/a")).toBe(`200 v3 fwd=stale; detail=${reason}`);
    expect(s.edge.cache.entries.length).toBe(left);
  });

  it("is never served where that is forbidden", async () => {
    for (const forbidden of ["must-revalidate", "proxy-revalidate", "s-maxage=60", "no-cache"]) {
      const value = `max-age=60, stale-if-error=999, ${forbidden}`;
      await using s = await openStage(
        (_q, r, n) => {
          r.sendDate = false;
          if (n > 1) r.destroy();
          else r.writeHead(200, { "Cache-Control": value, ETag: '"e"' }).end("v");
        },
        { default: { stale_if_error_s: 999 } },
      );
      await s.get("/a");
      s.edge.skewMs = 61_000;
      const headers = { "cache-control": "max-stale" };
      expect((await ask(s.edge, "/a", { headers })).status).toBe(502);
    }
  });
});

describe("a response without lifetime", () => {
  it("is stored by its tag and asked about at each use", async () => {
    await using s = await openStage(confirming({ "Cache-Control": "no-cache" }));
    expect(await s.get("/a")).toBe("200 v1 fwd=uri-miss; stored");
    expect(await s.get("/a")).toBe("200 v1 fwd=stale; fwd-status=304");
    expect(await s.get("/a")).toBe("200 v1 fwd=stale; fwd-status=304");
  });
});

describe("what a visitor asks for", () => {
  it("no-cache asks the origin, and the next visitor is served from its answer", async () => {
    await using s = await openStage(confirming());
    await s.get("/a");
    const headers = { "cache-control": "no-cache" };
    expect(await s.get("/a", { headers })).toBe("200 v1 fwd=request; fwd-status=304");
    expect((await ask(s.edge, "/a")).headers["x-no"]).toBe("2");
  });

  it.each<[string, Record<string, string>]>([
    ["nothing kept", { "cache-control": "no-cache, no-store" }],
    ["his own", { "cache-control": "no-cache", authorization: "x" }],
  ])("%s takes nothing from the others", async (_name, headers) => {
    const head = { "Cache-Control": "public, max-age=60" };
    await using s = await openStage((q, r, n) => confirming(n === 1 ? head : {})(q, r, n));
    await s.get("/a");
    for (const method of ["GET", "HEAD"]) {
      const { text, headers: said } = await ask(s.edge, "/a", { method, headers });
      expect(text).toBe(method === "GET" ? "v1" : "");
      expect(said["cache-status"]).toContain("fwd=request; fwd-status=304");
      expect(said["x-no"]).toBe(`${s.seen.length}`);
    }
    expect([s.seen.length, s.edge.cache.cleared.length, s.edge.cache.refreshed]).toEqual([3, 0, 0]);
    expect((await ask(s.edge, "/a")).headers["x-no"]).toBe("1");
    expect(s.seen.length).toBe(3);
  });

  it("nothing kept leaves what is stored to the next where the origin's answer is new", async () => {
    await using s = await openStage(fresh);
    await s.get("/a");
    const headers = { "cache-control": "no-cache, no-store" };
    expect(await s.get("/a", { headers })).toBe("200 v2 fwd=request; detail=request-no-store");
    expect(await s.get("/a")).toBe("200 v1 hit");
  });

  it("with credentials is answered from what is for all only", async () => {
    await using s = await openStage((q, r, n) => {
      const value = q.url === "/public" ? "public, max-age=60" : "max-age=60";
      r.writeHead(200, { "Cache-Control": value }).end(`v${n}`);
    });
    const headers = { authorization: "Basic eA==" };
    expect(await s.get("/public", { headers })).toBe("200 v1 fwd=uri-miss; stored");
    expect(await s.get("/public")).toBe("200 v1 hit");
    expect(await s.get("/public", { headers })).toBe("200 v1 hit");
    expect(await s.get("/own", { headers })).toBe("200 v2 fwd=uri-miss; detail=authorization");
    expect(await s.get("/own")).toBe("200 v3 fwd=uri-miss; stored");
  });
});

describe("while clears may be unknown", () => {
  it("what is stored is used once the origin has confirmed it", async () => {
    await using s = await openStage(confirming());
    await s.get("/a");
    s.edge.cache.isConfirmed = false;
    expect(await s.get("/a")).toBe("200 v1 fwd=stale; fwd-status=304");
    expect(await s.get("/a")).toBe("200 v1 fwd=stale; fwd-status=304");
    s.edge.cache.isConfirmed = true;
    expect(await s.get("/a")).toBe("200 v1 hit");
  });
});

describe("HEAD", () => {
  it("that confirms refreshes what is stored", async () => {
    await using s = await openStage(confirming());
    await s.get("/a");
    s.edge.skewMs = 61_000;
    expect(await s.get("/a", { method: "HEAD" })).toBe("200  fwd=stale; fwd-status=304");
    expect(s.seen[1]?.method).toBe("HEAD");
    expect(await s.get("/a")).toBe("200 v1 hit");
  });

  it("that says it is private now takes it from all, also where nothing is to be kept", async () => {
    await using s = await openStage((q, r, n) =>
      confirming(n === 2 ? { "Cache-Control": "private" } : {})(q, r, n),
    );
    await s.get("/a");
    const headers = { "cache-control": "no-cache, no-store" };
    await ask(s.edge, "/a", { method: "HEAD", headers });
    expect(s.edge.cache.entries).toEqual([]);
  });

  it("that is answered with a cookie is its visitor's, and what is stored stays", async () => {
    await using s = await openStage((q, r, n) =>
      confirming(n === 1 ? {} : { "Set-Cookie": `session=${n}` })(q, r, n),
    );
    await s.get("/a");
    const headers = { "cache-control": "no-cache" };
    const own = await ask(s.edge, "/a", { method: "HEAD", headers });
    expect([own.status, own.headers["set-cookie"]]).toEqual([200, `session=${s.seen.length}`]);
    expect(await s.get("/a")).toBe("200 v1 hit");
  });

  it("that tells of another makes what is stored stale", async () => {
    await using s = await openStage((q, r, n) => {
      if (q.method === "HEAD") r.writeHead(200, { ETag: '"other"', "Content-Length": "9" }).end();
      else fresh(q, r, n);
    });
    await s.get("/a");
    const headers = { "cache-control": "no-cache" };
    expect(await s.get("/a", { method: "HEAD", headers })).toBe("200  fwd=request");
    await until("the refresh", () => s.edge.cache.refreshed === 1);
    expect(await s.get("/a")).toBe("200 v3 fwd=stale; stored");
  });
});

describe("an unsafe method", () => {
  it("invalidates what its answer names on the same site, and nothing else", async () => {
    await using s = await openStage((q, r, n) => {
      if (q.method !== "POST") fresh(q, r, n);
      else
        r.writeHead(201, {
          Location: "/new?x=1",
          "Content-Location": "http://www.example.com/list",
          Link: "</other>",
        }).end();
    });
    const paths = ["/form", "/new?x=1", "/list", "/other"];
    for (const path of paths) await s.get(path);
    await ask(s.edge, "/form", { method: "POST", body: "x" });
    const after = await Promise.all(paths.map(async (path) => s.get(path)));
    expect(after.map((one) => one.endsWith(" hit"))).toEqual([false, false, false, true]);
  });

  it("invalidates what can be, and answers, where one URL cannot be", async () => {
    await using s = await openStage((q, r, n) => {
      if (q.method !== "POST") fresh(q, r, n);
      else r.writeHead(201, { Location: "/new" }).end();
    });
    await s.get("/new");
    const { cache } = s.edge;
    const invalidate = cache.invalidate.bind(cache);
    cache.invalidate = async (key) => {
      if (key.path === "/form") throw new Error("the index did not answer");
      await invalidate(key);
    };
    expect((await ask(s.edge, "/form", { method: "POST", body: "x" })).status).toBe(201);
    expect(await s.get("/new")).toBe("200 v3 fwd=uri-miss; stored");
  });

  it("has no say about another site", async () => {
    await using s = await openStage((q, r, n) => {
      if (q.method !== "POST") fresh(q, r, n);
      else r.writeHead(201, { Location: "http://elsewhere.example/list" }).end();
    });
    await s.get("/list");
    await ask(s.edge, "/form", { method: "POST", body: "x" });
    expect(await s.get("/list")).toBe("200 v1 hit");
  });
});
