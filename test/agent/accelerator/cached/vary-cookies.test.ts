// Rules that say what cookies mean: who shares an entry, what the origin is told, and that nothing prepared for other cookies is sent; over the lane, over
// node:http and over HTTP/2.

import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import type { CacheInput } from "../../../../src/core/serving/effective-devlove.ts";
import { createRandom } from "../../../support/outside-random.ts";
import { until } from "../../../support/until.ts";
import { raw } from "../edge.ts";
import type { Handler } from "../stage.ts";
import { visited, ways } from "../visited.ts";

const echo: Handler = (q, r, n) => {
  r.end(`v${n} ${q.headers.cookie ?? "-"}`);
};
const shop: CacheInput = {
  ttl_s: 300,
  cookies: {
    bypass: ["session", "role=admin"],
    vary: ["lang", "currency"],
    ignore: ["seen_*", "theme"],
  },
};
const analytics =
  "_ga=GA1.2.3; _gid=GA1.2.4; _gat=1; _fbp=fb.1.2; _fbc=fb.1.3; _gcl_au=1.1; _clck=a; _clsk=b; _uetsid=c; _uetvid=d; _hjid=e; hubspotutk=f";

describe.each(ways)("over %s", (way) => {
  it("those with the same cookies to vary by share one entry, and no others do", async () => {
    await using s = await visited(way, echo, shop);
    expect(await s.get("lang=de; _ga=1; seen_x=2")).toBe("200 v1 lang=de fwd=uri-miss; stored");
    expect(await s.get("theme=dark; lang=de")).toBe("200 v1 lang=de hit");
    expect(await s.get(["_gid=7", "lang=de"])).toBe("200 v1 lang=de hit");
    expect(await s.get("lang=fr")).toBe("200 v2 lang=fr fwd=vary-miss; stored");
    expect(await s.get()).toBe("200 v3 - fwd=vary-miss; stored");
    expect(await s.get("_ga=1")).toBe("200 v3 - hit");
    expect(await s.get("lang=de; currency=EUR")).toBe("200 v4 currency=EUR; lang=de fwd=vary-miss; stored");
    expect(await s.get("currency=EUR;seen_=1;lang=de")).toBe("200 v4 currency=EUR; lang=de hit");
    expect(await s.get("lang=de")).toBe("200 v1 lang=de hit");
    expect(await s.get("lang=fr")).toBe("200 v2 lang=fr hit");
    expect(s.told).toEqual(["lang=de", "lang=fr", undefined, "currency=EUR; lang=de"]);
  }); // prettier-ignore

  it.each([
    ["a cookie that bypasses", "lang=de; session=1", "fwd=bypass; detail=cookie"],
    ["a value that bypasses", "role=admin", "fwd=bypass; detail=cookie"],
    ["one of two values", "role=user; role=admin", "fwd=bypass; detail=cookie"],
    ["a cookie of which nothing is said", "lang=de; other=1", "fwd=bypass; detail=cookie"],
    ["two values to vary by", "lang=de; lang=fr", "fwd=bypass; detail=cookie"],
    ["a value in quotes", 'lang="de"', "fwd=bypass; detail=cookie"],
  ])("%s is passed on as it came, and answered by nothing that is stored", async (_n, cookie, said) => {
    await using s = await visited(way, echo, shop);
    for (const warm of [[], "lang=de", "lang=fr"]) {
      await s.get(warm);
      await s.get(warm);
    }
    for (const n of [4, 5]) expect(await s.get(cookie)).toBe(`200 v${n} ${cookie} ${said}`);
    expect(s.edge.cache.entries.length).toBe(3);
    expect(await s.get("lang=de")).toBe("200 v2 lang=de hit");
  }); // prettier-ignore

  it("what is prepared for one is not sent to whose cookies decide otherwise", async () => {
    await using s = await visited(way, echo, shop);
    const asked = ["lang=de", "lang=fr", "_ga=1; lang=de", "session=2", []];
    for (let round = 0; round < 3; round++) {
      const got = await Promise.all(asked.map(async (one) => (await s.ask(one)).text));
      const told = got.map((text) => text.replace(/^v\d+ /, ""));
      expect(told).toEqual(["lang=de", "lang=fr", "lang=de", "session=2", "-"]);
    }
  });

  it("Vary: Cookie means the told ones", async () => {
    await using s = await visited(way, (q, r, n) => {
      r.writeHead(200, { Vary: "Cookie" }).end(`v${n} ${q.headers.cookie ?? "-"}`);
    }, shop); // prettier-ignore
    expect(await s.get("lang=de; _ga=1")).toBe("200 v1 lang=de fwd=uri-miss; stored");
    expect(await s.get("_ga=2; lang=de; theme=x")).toBe("200 v1 lang=de hit");
    expect(await s.get("lang=fr; _ga=1")).toBe("200 v2 lang=fr fwd=vary-miss; stored");
    expect(await s.get("lang=de")).toBe("200 v1 lang=de hit");
  });

  it("twelve cookies of analytics and one that is ignored are a hit in one step", async () => {
    await using s = await visited(way, echo, shop);
    await s.get();
    await s.get();
    const { quick } = s.edge;
    const before = quick.answer;
    expect(await s.get(`${analytics}; theme=dark`)).toBe("200 v1 - hit");
    expect(await s.get(`${analytics}; theme=light`)).toBe("200 v1 - hit");
    expect(quick.answer - before).toBe(way === "node:http" ? 0 : 2);
  });

  it("so is one with cookies to vary by, also by the origin's word", async () => {
    await using s = await visited(way, (q, r) => {
      r.writeHead(200, { Vary: "Cookie" }).end(q.headers.cookie ?? "-");
    }, shop); // prettier-ignore
    for (let n = 0; n < 2; n++) await s.get(`${analytics}; lang=de`);
    const { quick } = s.edge;
    const before = quick.answer;
    expect(await s.get(`lang=de; ${analytics}`)).toBe("200 lang=de hit");
    expect(await s.get(`theme=x; lang=de`)).toBe("200 lang=de hit");
    expect(quick.answer - before).toBe(way === "node:http" ? 0 : 2);
  });

  it("an answer that sets one of them is its visitor's own, whatever is stripped", async () => {
    await using s = await visited(way, (q, r, n) => {
      const cookies = q.url === "/choose" ? ["lang=fr; Path=/", "a=b"] : ["a=b"];
      r.writeHead(200, { "Set-Cookie": cookies }).end(`v${n}`);
    }, { ...shop, ignore_set_cookie: true }); // prettier-ignore
    for (const n of [1, 2]) {
      const { text, headers } = await s.ask("lang=de", "/choose");
      expect([text, String(headers["set-cookie"])]).toEqual([`v${n}`, "lang=fr; Path=/,a=b"]);
    }
    expect(s.edge.cache.entries).toEqual([]);
    const other = await s.ask("lang=de", "/other");
    expect([other.text, other.headers["set-cookie"]]).toEqual(["v3", undefined]);
    expect(await s.get("lang=de", {}, "/other")).toBe("200 v3 hit");
  });

  it("what any answer sets is kept from the cache where nothing is stripped", async () => {
    await using s = await visited(way, (_q, r, n) => {
      r.writeHead(200, { "Set-Cookie": "a=b" }).end(`v${n}`);
    }, shop); // prettier-ignore
    for (const n of [1, 2])
      expect(await s.get("lang=de")).toBe(`200 v${n} fwd=uri-miss; detail=set-cookie`);
  });

  it("is confirmed with the same cookies, each by itself", async () => {
    await using s = await visited(way, (q, r, n) => {
      const tag = `"of ${q.headers.cookie}"`;
      r.setHeader("ETag", tag);
      if (q.headers["if-none-match"] === tag) r.writeHead(304).end();
      else r.writeHead(200).end(`v${n} ${q.headers.cookie}`);
    }, shop); // prettier-ignore
    await s.get("lang=de; _ga=1");
    await s.get("lang=fr");
    s.edge.skewMs = 400_000;
    expect(await s.get("lang=de; _ga=2")).toBe("200 v1 lang=de fwd=stale; fwd-status=304");
    expect(await s.get("lang=de")).toBe("200 v1 lang=de hit");
    expect(await s.get("lang=fr")).toBe("200 v2 lang=fr fwd=stale; fwd-status=304");
    expect(s.told).toEqual(["lang=de", "lang=fr", "lang=de", "lang=fr"]);
  });

  it("a confirmation that sets one of them is asked for whole, and not stored", async () => {
    await using s = await visited(way, (q, r, n) => {
      r.setHeader("ETag", '"1"');
      if (n > 1) r.setHeader("Set-Cookie", "lang=fr");
      if (q.headers["if-none-match"] !== undefined) r.writeHead(304).end();
      else r.writeHead(200).end(`v${n}`);
    }, { ...shop, ignore_set_cookie: true }); // prettier-ignore
    await s.get("lang=de");
    s.edge.skewMs = 400_000;
    expect(await s.get("lang=de")).toBe("200 v3 fwd=stale; detail=set-cookie");
    expect(await s.get("lang=de")).toBe("200 v5 fwd=stale; detail=set-cookie");
  });

  it("is refreshed in the background with the same cookies", async () => {
    await using s = await visited(way, echo, { ...shop, stale_while_revalidate_s: 600 });
    await s.get("lang=de");
    await s.get("lang=fr");
    s.edge.skewMs = 400_000;
    expect(await s.get("lang=de; _ga=1")).toBe("200 v1 lang=de hit");
    await until("the refresh", () => s.edge.cache.entries.length === 3);
    expect(await s.get("lang=de")).toBe("200 v3 lang=de hit");
    expect(await s.get("session=1")).toBe("200 v4 session=1 fwd=bypass; detail=cookie");
    expect(s.told).toEqual(["lang=de", "lang=fr", "lang=de", "session=1"]);
  });

  it("stands in for an origin that fails, for the same cookies alone", async () => {
    await using s = await visited(way, (q, r, n) => {
      if (n > 1) r.writeHead(500).end("trouble");
      else r.end(`v${n} ${q.headers.cookie}`);
    }, { ...shop, stale_if_error_s: 600 }); // prettier-ignore
    await s.get("lang=de");
    s.edge.skewMs = 400_000;
    expect(await s.get("lang=de")).toBe("200 v1 lang=de fwd=stale; fwd-status=500; detail=stale-if-error"); // prettier-ignore
    expect(await s.get("lang=fr")).toBe("500 trouble fwd=vary-miss; detail=no-freshness");
    expect(await s.get("session=1")).toBe("500 trouble fwd=bypass; detail=cookie");
  });

  it("HEAD and parts are asked for with the told cookies, and answered by what is stored for them", async () => {
    await using s = await visited(way, echo, shop);
    const head = { method: "HEAD" };
    const part = { headers: { range: "bytes=0-1" } };
    expect(await s.get("lang=de; _ga=1", head)).toBe("200  fwd=uri-miss");
    expect(await s.get("lang=de; _ga=1", part)).toBe("200 v2 lang=de fwd=uri-miss; stored");
    expect(await s.get("lang=fr", part)).toBe("200 v3 lang=fr fwd=vary-miss; stored");
    expect(await s.get("_ga=2; lang=de", part)).toBe("206 v2 hit");
    expect(await s.get("lang=de", head)).toBe("200  hit");
    expect(await s.get("session=1", head)).toBe("200  fwd=bypass; detail=cookie");
    expect(s.told).toEqual(["lang=de", "lang=de", "lang=fr", "session=1"]);
  });

  it("a clear, and what a visitor changes, take the entries of all cookies", async () => {
    await using s = await visited(way, echo, shop);
    for (let round = 0; round < 3; round++) {
      for (const cookie of ["lang=de", "lang=fr"]) {
        expect(await s.get(cookie)).toContain(`${cookie} fwd=`);
        expect(await s.get(cookie)).toContain(`${cookie} hit`);
      }
      if (round === 0) s.edge.cache.clear(() => true);
      else if (round === 1) await s.get("lang=de; session=1", { method: "POST" });
    }
  });

  it("only-if-cached is told that nothing is stored for it", async () => {
    await using s = await visited(way, echo, shop);
    await s.get("lang=de");
    const only = { headers: { "cache-control": "only-if-cached" } };
    expect(await s.get("lang=de; _ga=1", only)).toBe("200 v1 lang=de hit");
    expect(await s.get("lang=fr", only)).toMatch(/^504 /);
    expect(await s.get("lang=de; session=1", only)).toMatch(/^504 /);
    expect(s.seen.length).toBe(1);
  });

  it("another rule uses what is stored only where the origin would be told the same", async () => {
    await using s = await visited(way, (q, r, n) => {
      r.writeHead(200, { "Cache-Control": "max-age=300" }).end(`v${n} ${q.headers.cookie ?? "-"}`);
    }, {}); // prettier-ignore
    const rest = { ttl_s: 300, ignore: ["lang"] };
    // By the origin's word it is for all, whose cookies it was told.
    expect(await s.get("lang=de")).toBe("200 v1 lang=de fwd=uri-miss; stored");
    s.publish({ default: shop });
    expect(await s.get("lang=de")).toMatch(/^200 v2 lang=de fwd=\S+-miss; stored$/);
    expect(await s.get()).toMatch(/^200 v3 - fwd=\S+-miss; stored$/);
    s.publish({ default: { ttl_s: rest.ttl_s, cookies: { vary: ["lang", "theme"] } } });
    expect(await s.get("lang=de")).toBe("200 v2 lang=de hit");
    expect(await s.get("lang=de; theme=x")).toBe("200 v4 lang=de; theme=x fwd=vary-miss; stored");
    s.publish({ default: { ttl_s: rest.ttl_s, cookies: { ignore: rest.ignore } } });
    expect(await s.get("lang=de")).not.toContain("lang=de");
    s.publish({});
    expect(await s.get("session=1; lang=de")).not.toMatch(/ v[234] /);
  }); // prettier-ignore

  it("where two rules may hold for a path, a cookie passes its request on", async () => {
    await using s = await visited(way, (q, r, n) => {
      r.writeHead(200, { "Cache-Control": "max-age=300" }).end(`v${n} ${q.headers.cookie ?? "-"}`);
    }, {}); // prettier-ignore
    s.publish({ rules: [{ path: "/shop/**", ...shop }] });
    const odd = "/shop%2fa";
    expect(await s.get([], {}, odd)).toBe("200 v1 - fwd=uri-miss; stored");
    for (const [n, cookie] of ["lang=de", "session=1", "_ga=1"].entries())
      expect(await s.get(cookie, {}, odd)).toBe(`200 v${n + 2} ${cookie} fwd=bypass; detail=cookie`); // prettier-ignore
  });

  it("without ttl_s the origin's word holds for those with the same cookies to vary by", async () => {
    await using s = await visited(way, (q, r, n) => {
      r.writeHead(200, { "Cache-Control": "max-age=60" }).end(`v${n} ${q.headers.cookie ?? "-"}`);
    }, { cookies: { vary: ["lang"], bypass: ["session"] } }); // prettier-ignore
    expect(await s.get("lang=de; _ga=1")).toBe("200 v1 lang=de fwd=uri-miss; stored");
    expect(await s.get("lang=de; _ga=2")).toBe("200 v1 lang=de hit");
    expect(await s.get("lang=fr")).toBe("200 v2 lang=fr fwd=vary-miss; stored");
    expect(await s.get("lang=de; x=1")).toBe("200 v3 lang=de; x=1 fwd=bypass; detail=cookie");
    expect(await s.get("session=1")).toBe("200 v4 session=1 fwd=bypass; detail=cookie");
  });

  it("a rule that only bypasses leaves all other cookies to the origin's word", async () => {
    await using s = await visited(way, (q, r, n) => {
      r.writeHead(200, { "Cache-Control": "max-age=60" }).end(`v${n} ${q.headers.cookie ?? "-"}`);
    }, { cookies: { bypass: ["session"] } }); // prettier-ignore
    expect(await s.get("x=1")).toBe("200 v1 x=1 fwd=uri-miss; stored");
    expect(await s.get("x=2")).toBe("200 v1 x=1 hit");
    expect(await s.get("x=2; session=1")).toBe("200 v2 x=2; session=1 fwd=bypass; detail=cookie");
    expect(await s.get("odd")).toBe("200 v3 odd fwd=bypass; detail=cookie");
  });

  it("a request that bypasses is counted apart from one with any other cookie", async () => {
    await using s = await visited(way, echo, shop);
    await s.get("session=1");
    await s.get("other=1");
    const metrics = await s.edge.registry.metrics();
    for (const reason of ["bypass_cookie", "cookie"])
      expect(metrics).toContain(
        `accel_agent_cache_passed_total{domain="www.example.com",reason="${reason}"} 1\n`,
      );
    expect(s.edge.records.map(({ cache }) => cache)).toEqual(["pass", "pass"]);
  });

  it("waits for the fetch of who would be told the same, and for no other", async () => {
    const held: ServerResponse[] = [];
    await using s = await visited(way, (_q, r) => void held.push(r), shop);
    const first = s.get("lang=de; _ga=1");
    await until("the fetch", () => held[0]);
    const same = s.get("lang=de; _ga=2");
    const other = s.get("lang=fr");
    const likeOther = s.get("theme=x; lang=fr");
    const passed = s.get("lang=de; session=1");
    await until("the others", () => held[2]);
    const line = 'accel_agent_allowed_total{domain="www.example.com",reason="not-a-bot"} 5\n';
    await until("all", async () => (await s.edge.registry.metrics()).includes(line));
    for (const [at, response] of held.entries()) response.end(s.told[at]);
    expect(await first).toBe("200 lang=de fwd=uri-miss; stored");
    expect(await same).toBe("200 lang=de fwd=uri-miss; collapsed");
    expect([await other, await likeOther].toSorted()).toEqual([
      "200 lang=fr fwd=uri-miss; collapsed",
      "200 lang=fr fwd=uri-miss; stored",
    ]);
    expect(await passed).toBe("200 lang=de; session=1 fwd=bypass; detail=cookie");
    expect(held.length).toBe(3);
  });

  it("random visitors find no value in a page but their own of a cookie to vary by", async () => {
    const { next } = createRandom(17);
    const below = (end: number): number => Math.floor(next() * end);
    await using s = await visited(way, (q, r) => {
      const answers = q.url === "/own" ? { "Cache-Control": "private" } : { Vary: "Cookie" };
      r.writeHead(200, answers).end(`told ${q.headers.cookie ?? "-"}`);
    }, { ...shop, stale_while_revalidate_s: 5 }); // prettier-ignore
    let hits = 0;
    let canaries = 0;
    for (let round = 0; round < 60; round++) {
      s.edge.skewMs += below(4) === 0 ? 301_000 : 0;
      const visits = Array.from({ length: 8 }, async () => {
        const canary = `canary${++canaries}x`;
        const lang = ["", "lang=de", "lang=fr"][below(3)] ?? "";
        const others = [`_ga=${canary}`, `seen_a=${canary}`, `theme=${canary}`, `other=${canary}`, `session=${canary}`]; // prettier-ignore
        const own = others.slice(0, below(8) === 0 ? 5 : 3).filter(() => below(2) === 0);
        const cookie = [...own, lang].filter((one) => one !== "").join("; ");
        const path = ["/", "/a", "/own"][below(3)];
        const got = await s.get(cookie === "" ? [] : cookie, {}, path);
        const isPassed = own.some((one) => /^(?:other|session)=/.test(one));
        for (const [found] of got.matchAll(/canary\d+x/g)) {
          expect(isPassed).toBe(true);
          expect(found).toBe(canary);
        }
        expect(/lang=\w+/.exec(got)?.[0] ?? "").toBe(lang);
        if (got.endsWith(" hit")) hits++;
      });
      await Promise.all(visits);
    }
    expect(hits).toBeGreaterThan(100);
    expect(s.edge.quick.answer > 20).toBe(way !== "node:http");
  });
});

it("over HTTP/1.1 several Cookie fields are one", async () => {
  await using s = await visited("lane", echo, shop);
  const head = (cookies: readonly string[]): string =>
    `GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n${cookies.map((one) => `Cookie: ${one}\r\n`).join("")}\r\n`;
  await s.get("lang=de");
  expect(await raw(s.edge, head(["_ga=1", "lang=de"]))).toMatch(/Cache-Status: accel-agent; hit;.*\r\n\r\nv1 lang=de$/s); // prettier-ignore
  expect(await raw(s.edge, head(["lang=de", "lang=fr"]))).toContain("fwd=bypass; detail=cookie");
  expect(await raw(s.edge, head(["lang=de", "session=1"]))).toContain("fwd=bypass; detail=cookie");
});

it("a visitor who names Cookie in Connection is told nothing else", async () => {
  await using s = await visited("node:http", echo, shop);
  const head = "GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close, cookie\r\nCookie: lang=de\r\n\r\n"; // prettier-ignore
  expect(await raw(s.edge, head)).toMatch(/v1 lang=de$/);
  expect(await s.get()).toBe("200 v2 - fwd=vary-miss; stored");
  expect(await s.get("lang=de")).toBe("200 v1 lang=de hit");
});
