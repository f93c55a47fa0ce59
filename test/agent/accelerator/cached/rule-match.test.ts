// Rules that ask for more than a path: by the query, by a header; over the lane, over node:http and over HTTP/2.

import { describe, expect, it } from "vitest";
import { until } from "../../../support/until.ts";
import type { Handler } from "../stage.ts";
import { visited, ways } from "../visited.ts";

const echo: Handler = (q, r, n) => {
  r.end(`v${n} ${String(q.headers["x-app"] ?? "-")}`);
};

describe.each(ways)("over %s", (way) => {
  it("a parameter passes its request on, however it is spelt, and others are hits", async () => {
    await using s = await visited(way, echo, { ttl_s: 1 });
    s.publish({
      rules: [
        { path: "/**", match: { query: ["preview"] }, bypass: true },
        { path: "/**", ttl_s: 60, query: { ignore: ["*"] } },
      ],
    });
    expect(await s.get()).toBe("200 v1 - fwd=uri-miss; stored");
    expect(await s.get([], {}, "/?a=1")).toBe("200 v1 - hit");
    expect(await s.get([], {}, "/?a=1")).toBe("200 v1 - hit");
    let n = 1;
    for (const query of ["preview", "a=1&preview=2", "%70review", "Preview", "preview[]=1", ";preview"])
      for (let again = 0; again < 2; again++)
        expect(await s.get([], {}, `/?${query}`)).toBe(`200 v${++n} - fwd=bypass`);
    expect(await s.get([], {}, "/?a=2")).toBe("200 v1 - hit");
  }); // prettier-ignore

  it("a header chooses the rule, and nobody gets what was stored for the others", async () => {
    await using s = await visited(way, echo, { ttl_s: 1 });
    s.publish({
      rules: [
        { path: "/**", match: { header: { "X-Member": "*" } }, bypass: true },
        { path: "/**", match: { header: { "X-App": "2.*" } }, ttl_s: 60 },
        { path: "/**", ttl_s: 60 },
      ],
    });
    const app = { headers: { "x-app": "2.1" } };
    const member = { headers: { "x-member": "1" } };
    expect(await s.get([], app)).toBe("200 v1 2.1 fwd=uri-miss; stored");
    expect(await s.get([], app)).toBe("200 v1 2.1 hit");
    expect(await s.get()).toBe("200 v2 - fwd=vary-miss; stored");
    expect(await s.get([], member)).toBe("200 v3 - fwd=bypass");
    for (let round = 0; round < 3; round++) {
      expect(await s.get([], app)).toBe("200 v1 2.1 hit");
      expect(await s.get([], { headers: { "x-app": "2.2" } })).toBe("200 v1 2.1 hit");
      expect(await s.get()).toBe("200 v2 - hit");
      expect(await s.get([], member)).toBe(`200 v${4 + round} - fwd=bypass`);
    }
  });

  it("what was stored before a header counted answers nobody afterwards", async () => {
    await using s = await visited(way, echo, { ttl_s: 60 });
    expect(await s.get([], { headers: { "x-app": "1" } })).toBe("200 v1 1 fwd=uri-miss; stored");
    expect(await s.get()).toBe("200 v1 1 hit");
    const rest = { path: "/**", ttl_s: 60 };
    s.publish({ rules: [{ path: "/**", match: { header: { "X-App": "*" } }, ttl_s: 60 }, rest] });
    expect(await s.get()).toBe("200 v2 - fwd=vary-miss; stored");
    expect(await s.get()).toBe("200 v2 - hit");
    s.publish({ rules: [rest] });
    expect(await s.get()).toBe("200 v1 1 hit");
  });

  it("what a parameter chose is told apart also where the rule leaves that parameter out", async () => {
    await using s = await visited(way, echo, { ttl_s: 60 });
    const keep = { keep: ["id"] };
    s.publish({
      rules: [
        { path: "/**", match: { query: ["a*"] }, ttl_s: 60, query: keep },
        { path: "/**", match: { query: ["b"] }, ttl_s: 60, query: keep },
        { path: "/**", ttl_s: 60 },
      ],
    });
    expect(await s.get([], {}, "/p")).toBe("200 v1 - fwd=uri-miss; stored");
    expect(await s.get([], {}, "/p?a=1")).toBe("200 v2 - fwd=vary-miss; stored");
    expect(await s.get([], {}, "/p?b=1")).toBe("200 v3 - fwd=vary-miss; stored");
    expect(await s.get([], {}, "/p?ab=2")).toBe("200 v2 - hit");
    expect(await s.get([], {}, "/p?b=2")).toBe("200 v3 - hit");
    expect(await s.get([], {}, "/p")).toBe("200 v1 - hit");
  });

  it("a change takes the page as every rule stored it", async () => {
    await using s = await visited(way, echo, { ttl_s: 60 });
    s.publish({
      rules: [
        { path: "/**", match: { header: { "X-App": "*" } }, ttl_s: 60, query: { keep: [] } },
        { path: "/**", ttl_s: 60 },
      ],
    });
    const app = { headers: { "x-app": "1" } };
    await s.get([], app, "/a?b=1");
    await s.get([], {}, "/a?b=1");
    expect(s.edge.cache.entries.length).toBe(2);
    await s.get([], { method: "POST" }, "/a?b=1");
    expect(await s.get([], app, "/a?b=1")).toContain("v4");
    expect(await s.get([], {}, "/a?b=1")).toContain("v5");
  });

  it("visitors of different rules do not share a fetch", async () => {
    const gate = Promise.withResolvers<undefined>();
    await using s = await visited(way, (q, r, n) => {
      void gate.promise.then(() => echo(q, r, n));
    }, { ttl_s: 60 }); // prettier-ignore
    s.publish({
      rules: [
        { path: "/a%2fb", ttl_s: 1 },
        { path: "/**", match: { header: { "X-App": "*" } }, ttl_s: 60 },
        { path: "/**", ttl_s: 60 },
      ],
    });
    const both = [s.get([], { headers: { "x-app": "1" } }), s.get()];
    await until("both ask", () => s.seen.length === 2);
    gate.resolve(undefined);
    const got = await Promise.all(both);
    expect(got.map((text) => text.replace(/^200 v\d /, "").slice(0, 1))).toEqual(["1", "-"]);
    expect(s.seen.length).toBe(2);
  });
});
