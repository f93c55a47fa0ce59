// A pause of the cache: everything is passed on at once and until its end, and what is stored is used again; over the lane, over node:http and over HTTP/2.

import { describe, expect, it } from "vitest";
import type { Handler } from "../stage.ts";
import { visited, ways } from "../visited.ts";

const count: Handler = (_q, r, n) => {
  r.end(`v${n}`);
};
const rule = { ttl_s: 3_600 };
const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();

describe.each(ways)("over %s", (way) => {
  it("begins with the devlove and ends at its time, whatever was stored before", async () => {
    await using s = await visited(way, count, rule);
    expect(await s.get()).toBe("200 v1 fwd=uri-miss; stored");
    for (let n = 0; n < 3; n++) expect(await s.get()).toBe("200 v1 hit");
    s.publish({ paused_until: inMs(3_600_000), default: rule });
    expect(await s.get()).toBe("200 v2 fwd=bypass; detail=paused");
    expect(await s.get("_ga=1")).toBe("200 v3 fwd=bypass; detail=paused");
    expect(await s.get([], {}, "/new")).toBe("200 v4 fwd=bypass; detail=paused");
    s.edge.wallSkewMs = 3_500_000;
    expect(await s.get()).toBe("200 v5 fwd=bypass; detail=paused");
    s.edge.wallSkewMs = 3_700_000;
    expect(await s.get()).toBe("200 v1 hit");
    expect(await s.get([], {}, "/new")).toBe("200 v6 fwd=uri-miss; stored");
    expect(s.told).toEqual([undefined, undefined, "_ga=1", undefined, undefined, undefined]);
  });

  it("ends with another devlove, and a change takes what is stored meanwhile", async () => {
    await using s = await visited(way, count, rule);
    await s.get();
    await s.get([], {}, "/other");
    s.publish({ paused_until: inMs(3_600_000), default: rule });
    expect(await s.get([], { method: "POST" })).toBe("200 v3 fwd=method");
    s.publish({ default: rule });
    expect(await s.get()).toBe("200 v4 fwd=uri-miss; stored");
    expect(await s.get([], {}, "/other")).toBe("200 v2 hit");
  });

  it("that is over changes nothing", async () => {
    await using s = await visited(way, count, rule);
    s.publish({ paused_until: inMs(-1_000), default: rule });
    expect(await s.get()).toBe("200 v1 fwd=uri-miss; stored");
    for (let n = 0; n < 3; n++) expect(await s.get()).toBe("200 v1 hit");
  });
});
