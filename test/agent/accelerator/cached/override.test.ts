// Rules that override `no-cache` and `max-age=0`: over the lane, over node:http and over HTTP/2.

import { describe, expect, it } from "vitest";
import { visited, ways } from "../visited.ts";

const overriding = { ttl_s: 60, override: ["no-cache" as const, "max-age" as const] };

describe.each(ways)("over %s", (way) => {
  it("gives a lifetime to what asks to be confirmed, and browsers are told the origin's words", async () => {
    const words = "no-cache, must-revalidate, max-age=0";
    await using s = await visited(way, (_q, r, n) => {
      r.writeHead(200, { "Cache-Control": words }).end(`v${n}`);
    }, overriding); // prettier-ignore
    expect(await s.get()).toBe("200 v1 fwd=uri-miss; stored");
    for (let n = 0; n < 3; n++) expect(await s.get()).toBe("200 v1 hit");
    expect((await s.ask("_ga=1")).headers["cache-control"]).toBe(words);
    expect(await s.get("own=1")).toBe("200 v2 fwd=bypass; detail=cookie");
    s.publish({ default: { ttl_s: 60 } });
    expect(await s.get()).toMatch(/^200 v3 fwd=/);
  });

  it.each([
    ["private, no-cache", "private"],
    ["no-store", "no-store"],
  ])("and never to %s", async (words, reason) => {
    await using s = await visited(way, (_q, r, n) => {
      r.writeHead(200, { "Cache-Control": words }).end(`v${n}`);
    }, overriding); // prettier-ignore
    for (const n of [1, 2]) expect(await s.get()).toBe(`200 v${n} fwd=uri-miss; detail=${reason}`);
  });
});
