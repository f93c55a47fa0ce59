// What browsers are told of a lifetime by whatever answers: the origin, a fetch that is shared, memory; over the lane, over node:http and over HTTP/2.

import { describe, expect, it } from "vitest";
import type { Handler } from "../stage.ts";
import { visited, ways, type Visited } from "../visited.ts";

const page: Handler = (q, r, n) => {
  r.setHeader("ETag", '"1"');
  if (q.url === "/private") r.setHeader("Cache-Control", "private, max-age=5");
  else if (q.url === "/gone") r.statusCode = 404;
  else if (q.url === "/login")
    r.setHeader("Cache-Control", "max-age=5").setHeader("Set-Cookie", "session=1");
  else r.setHeader("Cache-Control", "public, max-age=5");
  if (q.headers["if-none-match"] !== undefined) r.writeHead(304).end();
  else r.end(`v${n}`);
};
const rule = { ttl_s: 300, browser_ttl_s: 60, stale_while_revalidate_s: 5 };

describe.each(ways)("over %s", (way) => {
  const told = async (s: Visited, path = "/", asked = {}): Promise<string> => {
    const { status, headers } = await s.visit(path, { cookie: [], ...asked });
    const how = /hit|stored|fwd=\w+/.exec(String(headers["cache-status"]))?.[0];
    return `${status} ${String(headers["cache-control"])} ${Number(headers["age"] ?? 0)} ${how}`;
  };

  it("a shared answer says the rule's, from the moment it is sent", async () => {
    await using s = await visited(way, page, rule);
    expect(await told(s)).toBe("200 public, max-age=60 0 fwd=uri");
    expect(await told(s)).toBe("200 public, max-age=60 0 hit");
    expect(await told(s)).toBe("200 public, max-age=60 0 hit");
    s.edge.skewMs = 100_000;
    expect(await told(s)).toBe("200 public, max-age=160 100 hit");
    expect(await told(s, "/", { headers: { "if-none-match": '"1"' } })).toBe("304 public, max-age=160 100 hit"); // prettier-ignore
    expect(await told(s, "/", { headers: { range: "bytes=0-0" } })).toBe("206 public, max-age=160 100 hit"); // prettier-ignore
    expect(await told(s, "/", { method: "HEAD" })).toBe("200 public, max-age=160 100 hit");
    s.edge.skewMs = 301_000;
    expect(await told(s)).toBe("200 public, max-age=5 301 hit");
  });

  it("so does one that was confirmed, and the head of one that is not stored yet", async () => {
    await using s = await visited(way, page, { ttl_s: 300, browser_ttl_s: 60 });
    expect(await told(s, "/", { method: "HEAD" })).toBe("200 public, max-age=60 0 fwd=uri");
    await told(s);
    s.edge.skewMs = 400_000;
    expect(await told(s)).toBe("200 public, max-age=60 0 fwd=stale");
  });

  it("what is for one visitor, what is passed on and what is no success say what the origin says", async () => {
    await using s = await visited(way, page, rule);
    expect(await told(s, "/private")).toBe("200 private, max-age=5 0 fwd=uri");
    expect(await told(s, "/private", { method: "HEAD" })).toBe("200 private, max-age=5 0 fwd=uri");
    for (const method of ["GET", "HEAD"])
      expect(await told(s, "/login", { method })).toBe("200 max-age=5 0 fwd=uri");
    expect(await told(s, "/gone")).toBe("404 undefined 0 fwd=uri");
    expect(await told(s, "/", { cookie: "session=1" })).toBe("200 public, max-age=5 0 fwd=bypass");
  });

  it("without the key nothing changes, also for what is stored", async () => {
    await using s = await visited(way, page, rule);
    await told(s);
    await told(s);
    s.publish({ default: { ttl_s: 300 } });
    for (let n = 0; n < 2; n++) expect(await told(s)).toBe("200 public, max-age=5 0 hit");
    s.publish({ default: { ttl_s: 300, browser_ttl_s: 0 } });
    for (let n = 0; n < 2; n++) expect(await told(s)).toBe("200 public, max-age=0 0 hit");
  });
});
