// Rules that tell answers apart by request headers: over the lane, over node:http and over HTTP/2.

import { describe, expect, it } from "vitest";
import { until } from "../../../support/until.ts";
import type { Handler } from "../stage.ts";
import { visited, ways } from "../visited.ts";

const echo: Handler = (q, r, n) => {
  r.end(`v${n} ${q.headers["accept-language"] ?? "-"}`);
};
const rule = { ttl_s: 60, vary: ["Accept-Language"] };
const speaks = (language: string) => ({ headers: { "accept-language": language } });

describe.each(ways)("over %s", (way) => {
  it("each value has an entry of its own, and none is one as well", async () => {
    await using s = await visited(way, echo, rule);
    expect(await s.get([], speaks("de"))).toBe("200 v1 de fwd=uri-miss; stored");
    expect(await s.get([], speaks("fr"))).toBe("200 v2 fr fwd=vary-miss; stored");
    expect(await s.get()).toBe("200 v3 - fwd=vary-miss; stored");
    for (let round = 0; round < 3; round++) {
      expect(await s.get([], speaks("de"))).toBe("200 v1 de hit");
      expect(await s.get([], speaks("DE"))).toBe("200 v1 de hit");
      expect(await s.get([], speaks("fr"))).toBe("200 v2 fr hit");
      expect(await s.get()).toBe("200 v3 - hit");
    }
  });

  it("what was stored before, by whatever visitor, answers nobody", async () => {
    await using s = await visited(way, echo, { ttl_s: 60 });
    expect(await s.get([], speaks("de"))).toBe("200 v1 de fwd=uri-miss; stored");
    expect(await s.get()).toBe("200 v1 de hit");
    s.publish({ default: rule });
    expect(await s.get()).toBe("200 v2 - fwd=vary-miss; stored");
    expect(await s.get([], speaks("de"))).toBe("200 v3 de fwd=vary-miss; stored");
  });

  it("nobody waits for a fetch with another value", async () => {
    const gate = Promise.withResolvers<undefined>();
    await using s = await visited(way, (q, r, n) => {
      void gate.promise.then(() => echo(q, r, n));
    }, rule); // prettier-ignore
    const both = [s.get([], speaks("de")), s.get([], speaks("fr"))];
    await until("both ask", () => s.seen.length === 2);
    gate.resolve(undefined);
    expect((await Promise.all(both)).map((text) => text.split(" ")[2])).toEqual(["de", "fr"]);
  });

  it("a target that may be meant for it is passed on", async () => {
    await using s = await visited(way, echo, {});
    s.publish({ rules: [{ path: "/a/**", ...rule }], default: { ttl_s: 60 } });
    for (const n of [1, 2]) expect(await s.get([], {}, "/a%2fb")).toBe(`200 v${n} - fwd=bypass`);
  });

  it("is confirmed, and fetched again, by its own value", async () => {
    await using s = await visited(way, (q, r, n) => {
      const tag = `"${q.headers["accept-language"]}"`;
      r.setHeader("ETag", tag);
      if (q.headers["if-none-match"] === tag) r.writeHead(304).end();
      else echo(q, r, n);
    }, rule); // prettier-ignore
    await s.get([], speaks("de"));
    await s.get([], speaks("fr"));
    s.edge.skewMs = 100_000;
    expect(await s.get([], speaks("de"))).toBe("200 v1 de fwd=stale; fwd-status=304");
    expect(await s.get([], speaks("fr"))).toBe("200 v2 fr fwd=stale; fwd-status=304");
    expect(await s.get([], speaks("de"))).toBe("200 v1 de hit");
  });
});
