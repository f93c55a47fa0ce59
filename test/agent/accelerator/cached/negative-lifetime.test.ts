// What is not there, kept for as long as a rule says; over the lane, over node:http and over HTTP/2.

import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { until } from "../../../support/until.ts";
import type { Handler } from "../stage.ts";
import { visited, ways } from "../visited.ts";

const statuses: Readonly<Record<string, number>> = { "/gone": 410, "/no": 403, "/broken": 500 };
const nothing: Handler = (q, r, n) => {
  r.statusCode = statuses[q.url ?? ""] ?? 404;
  if (q.url === "/asked") r.setHeader("Cache-Control", "no-cache");
  if (q.url === "/private") r.setHeader("Cache-Control", "private");
  if (q.url === "/long") r.setHeader("Cache-Control", "max-age=600");
  r.end(`v${n} ${q.headers.cookie ?? "-"}`);
};

describe.each(ways)("over %s", (way) => {
  it("404 and 410 last as long as the rule says, and no longer", async () => {
    await using s = await visited(way, nothing, { negative_ttl_s: 60 });
    expect(await s.get([], {}, "/a")).toBe("404 v1 - fwd=uri-miss; stored");
    for (let n = 0; n < 2; n++) expect(await s.get([], {}, "/a")).toBe("404 v1 - hit");
    expect(await s.get([], {}, "/gone")).toBe("410 v2 - fwd=uri-miss; stored");
    expect(await s.get([], {}, "/gone")).toBe("410 v2 - hit");
    expect(await s.get([], {}, "/long")).toBe("404 v3 - fwd=uri-miss; stored");
    s.edge.skewMs = 61_000;
    expect(await s.get([], {}, "/a")).toBe("404 v4 - fwd=stale; stored");
    expect(await s.get([], {}, "/long")).toBe("404 v5 - fwd=stale; stored");
  });

  it("other errors, and what the origin forbids, are as fresh as it says", async () => {
    await using s = await visited(way, nothing, { ttl_s: 600, negative_ttl_s: 60 });
    const reasons = {
      "/no": "no-freshness",
      "/broken": "no-freshness",
      "/asked": "no-cache",
      "/private": "private",
    };
    for (const [path, reason] of Object.entries(reasons))
      for (let n = 0; n < 2; n++)
        expect(await s.get([], {}, path)).toContain(` fwd=uri-miss; detail=${reason}`);
  });

  it("ttl_s is not for them, and 0 keeps nothing", async () => {
    await using s = await visited(way, nothing, { ttl_s: 600 });
    for (const n of [1, 2])
      expect(await s.get()).toBe(`404 v${n} - fwd=uri-miss; detail=no-freshness`);
    s.publish({ default: { negative_ttl_s: 0 } });
    for (const n of [3, 4]) expect(await s.get()).toBe(`404 v${n} - fwd=uri-miss; detail=stale`);
  });

  it("without the key what was kept is asked for anew", async () => {
    await using s = await visited(way, nothing, { negative_ttl_s: 60 });
    for (let n = 0; n < 2; n++) await s.get();
    s.publish({});
    expect(await s.get()).toMatch(/^404 v2 - fwd=/);
  });

  it("is nothing of who has a cookie of his own, and not his answer for others", async () => {
    await using s = await visited(way, nothing, { negative_ttl_s: 60 });
    expect(await s.get("session=1")).toBe("404 v1 session=1 fwd=uri-miss; detail=cookie");
    expect(await s.get("_ga=1")).toBe("404 v2 - fwd=uri-miss; stored");
    for (const n of [3, 4])
      expect(await s.get("session=1")).toBe(`404 v${n} session=1 fwd=request; detail=cookie`);
    expect(await s.get()).toBe("404 v2 - hit");
    // By the origin's word it is for all.
    await s.get([], {}, "/long");
    expect(await s.get("session=1", {}, "/long")).toBe("404 v5 - hit");
  });

  it("nor is it given to him where he waits for another's fetch", async () => {
    const held: ServerResponse[] = [];
    await using s = await visited(way, (_q, r) => void held.push(r), { negative_ttl_s: 60 });
    const first = s.get();
    await until("the fetch", () => held[0]);
    const own = s.get("session=1");
    const line = 'accel_agent_allowed_total{domain="www.example.com",reason="not-a-bot"} 2\n';
    await until("both", async () => (await s.edge.registry.metrics()).includes(line));
    held[0]?.writeHead(404).end("for all");
    expect(await first).toBe("404 for all fwd=uri-miss; stored");
    await until("his own", () => held[1]);
    held[1]?.writeHead(404).end("for one");
    expect(await own).toMatch(/^404 for one /);
  });

  it("each choice by cookie has its own", async () => {
    await using s = await visited(way, nothing, {
      negative_ttl_s: 60,
      cookies: { vary: ["lang"] },
    });
    expect(await s.get("lang=de")).toBe("404 v1 lang=de fwd=uri-miss; stored");
    expect(await s.get("lang=fr")).toBe("404 v2 lang=fr fwd=vary-miss; stored");
    expect(await s.get("lang=de; _ga=1")).toBe("404 v1 lang=de hit");
  });

  it("what is there again takes its place, and what is gone takes the page's", async () => {
    const page = { isThere: true };
    await using s = await visited(way, (_q, r, n) => {
      r.statusCode = page.isThere ? 200 : 404;
      r.end(`v${n}`);
    }, { ttl_s: 60, negative_ttl_s: 10 }); // prettier-ignore
    expect(await s.get()).toBe("200 v1 fwd=uri-miss; stored");
    page.isThere = false;
    s.edge.skewMs = 61_000;
    expect(await s.get()).toBe("404 v2 fwd=stale; stored");
    expect(await s.get()).toBe("404 v2 hit");
    page.isThere = true;
    s.edge.skewMs = 72_000;
    expect(await s.get()).toBe("200 v3 fwd=stale; stored");
    expect(await s.get()).toBe("200 v3 hit");
  });
});
