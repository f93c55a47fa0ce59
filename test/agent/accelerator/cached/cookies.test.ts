// Requests with cookies: nobody gets the page that was made for another's cookie, whoever comes first, and a fetch that is shared tells nobody's.

import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import type { CacheInput } from "../../../../src/core/serving/effective-devlove.ts";
import { until } from "../../../support/until.ts";
import { answerAsWordPress, cookieOf } from "../../../support/wordpress-origin.ts";
import { ask, raw } from "../edge.ts";
import { visitByHttp2 } from "../secure-clients.ts";
import { openSecureStage } from "../secure-stage.ts";
import { openStage, type Handler, type Stage } from "../stage.ts";

const alice = { headers: { cookie: cookieOf.user("alice") } };
const bob = { headers: { cookie: cookieOf.user("bob") } };
const commenter = { headers: { cookie: cookieOf.commenter("carol") } };
const measured = { headers: { cookie: "_ga=GA1.2.3.4; OptanonConsent=isGpcEnabled=0&groups=C1" } };
const rule = { default: { ttl_s: 300 } };
const passed = "fwd=bypass; detail=cookie";

const told = ({ seen }: Stage): readonly unknown[] => seen.map(({ headers }) => headers.cookie);

describe("of WordPress under a rule with ttl_s", () => {
  it("a page for who is logged in is nobody else's, though he came first", async () => {
    await using s = await openStage(answerAsWordPress, rule);
    const answers: string[] = [];
    for (const asked of [alice, {}, {}, bob, measured, { ...alice, method: "HEAD" }])
      answers.push(await s.get("/", asked));
    expect(answers).toEqual([
      `200 Howdy, alice ${passed}`,
      "200 Hello, visitor fwd=uri-miss; stored",
      "200 Hello, visitor hit",
      `200 Howdy, bob ${passed}`,
      "200 Hello, visitor hit",
      `200  ${passed}`,
    ]);
    const { "cache-control": said } = (await ask(s.edge, "/", alice)).headers;
    expect(said).toBe("no-cache, must-revalidate, max-age=0");
  });

  it("a page with a visitor's name of which nothing is said is nobody else's", async () => {
    await using s = await openStage(answerAsWordPress, rule);
    expect(await s.get("/", commenter)).toBe(`200 Hello, visitor, comment as carol ${passed}`);
    expect(await s.get("/")).toBe("200 Hello, visitor fwd=uri-miss; stored");
    expect(await s.get("/", commenter)).toBe(`200 Hello, visitor, comment as carol ${passed}`);
  });

  it("who logs in gets his own pages from then on", async () => {
    await using s = await openStage(answerAsWordPress, rule);
    await s.get("/");
    const login = await ask(s.edge, "/wp-login.php", { method: "POST", body: "log=alice" });
    const pairs = login.rawHeaders.filter((_, i) => login.rawHeaders[i - 1] === "Set-Cookie");
    const cookie = pairs.map((pair) => pair.split(";", 1)[0]).join("; ");
    expect(await s.get("/", { headers: { cookie } })).toBe(`200 Howdy, alice ${passed}`);
    expect(await s.get("/")).toBe("200 Hello, visitor hit");
  });

  it("over HTTP/2 a login among pieces of cookies is seen", async () => {
    await using s = await openSecureStage(answerAsWordPress, { site: { cache: rule } });
    await using visitor = await visitByHttp2(s.port);
    const get = async (cookie: string[]): Promise<unknown> => {
      const { text, headers } = await visitor.ask("/", { headers: { cookie } });
      return `${text} ${String(headers["cache-status"]).replace(/; ttl=.*/, "")}`;
    };
    const [first, login] = cookieOf.user("alice").split("; ");
    expect(await get(["_ga=1", first ?? "", login ?? ""])).toBe(
      `Howdy, alice accel-agent; ${passed}`,
    );
    expect(await get(["_ga=1", "_gid=2"])).toBe("Hello, visitor accel-agent; fwd=uri-miss; stored");
    expect(await get(["_ga=1", login ?? ""])).toBe(`Howdy, alice accel-agent; ${passed}`);
    expect(await get([])).toBe("Hello, visitor accel-agent; hit");
  });

  it("over HTTP/1.1 a login in a second Cookie field is seen", async () => {
    await using s = await openStage(answerAsWordPress, rule);
    const both = `GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\nCookie: _ga=1\r\ncookie: ${cookieOf.user("alice")}\r\n\r\n`;
    expect(await raw(s.edge, both)).toContain(passed);
    expect(await s.get("/")).toBe("200 Hello, visitor fwd=uri-miss; stored");
  });

  it("a passed request is told as such: record, metric, Cache-Status", async () => {
    await using s = await openStage(answerAsWordPress, rule);
    await s.get("/", alice);
    await s.get("/");
    expect(s.edge.records.map(({ cache }) => cache)).toEqual(["pass", "miss"]);
    const line = 'accel_agent_cache_passed_total{domain="www.example.com",reason="cookie"} 1\n';
    expect(await s.edge.registry.metrics()).toContain(line);
  });
});

/** Answers are the test's to give. */
async function openHeld(cache: CacheInput) {
  const held: ServerResponse[] = [];
  const stage = await openStage((_q, r) => void held.push(r), { default: cache });
  return { stage, next: async (n: number) => until(`request ${n}`, () => held[n]) };
}

describe("a fetch in flight under a rule with ttl_s", () => {
  it.each([
    ["has a cookie", alice, {}],
    ["has none", {}, alice],
  ])("of a visitor who %s is not joined by who is not like him", async (_name, first, second) => {
    const { stage, next } = await openHeld({ ttl_s: 300 });
    await using s = stage;
    const one = s.get("/", first);
    const held = await next(0);
    const other = s.get("/", second);
    (await next(1)).end("of the second");
    expect(await other).toMatch(/^200 of the second fwd=(?:uri-miss; stored|bypass)/);
    held.end("of the first");
    expect(await one).toMatch(/^200 of the first fwd=(?:uri-miss|bypass)/);
  });

  it("is joined by those whose cookies are ignored, and tells nobody's", async () => {
    const { stage, next } = await openHeld({ ttl_s: 300 });
    await using s = stage;
    const one = s.get("/", measured);
    const held = await next(0);
    const other = s.get("/", { headers: { cookie: "_fbp=fb.1.2.3" } });
    await s.letIn(2);
    held.end("of all");
    expect([await one, await other]).toEqual([
      "200 of all fwd=uri-miss; stored",
      "200 of all fwd=uri-miss; collapsed",
    ]);
    expect(told(s)).toEqual([undefined]);
  });
});

describe("a shared fetch tells the origin no cookie", () => {
  const plain: Handler = (_q, r, n) => r.end(`v${n}`);

  it.each<[string, CacheInput, string]>([
    ["of the published list", { ttl_s: 300 }, "_ga=1; _hjSession_12=x; _pk_id.1.1fff=a.b"],
    ["that the rule ignores", { ttl_s: 300, cookies: { ignore: ["ab_*"] } }, "ab_test=1; _ga=2"],
    ["of all that it ignores", { ttl_s: 300, cookies: { ignore: ["*"] } }, "sid=1; odd; =x"],
    ["by the origin's word either", {}, "_ga=1"],
  ])("%s", async (_name, cache, cookie) => {
    const handler: Handler = (_q, r, n) => {
      r.sendDate = false;
      r.writeHead(200, { "Cache-Control": "max-age=300", Vary: "Cookie" }).end(`v${n}`);
    };
    await using s = await openStage(handler, { default: cache });
    const headers = { cookie, cookie2: "$Version=1" };
    for (const further of [{}, { range: "bytes=0-0" }])
      await s.get("/", { headers: { ...headers, ...further } });
    await s.get("/head", { headers, method: "HEAD" });
    await s.get("/no-store", { headers: { ...headers, "cache-control": "no-store" } });
    await s.get("/auth", { headers: { ...headers, authorization: "x" } });
    expect(s.seen.map((one) => [one.headers.cookie, one.headers["cookie2"]])).toEqual(
      s.seen.map(() => [undefined, undefined]),
    );
    expect(s.seen.length).toBe(4);
    expect(await s.get("/")).toBe("200 v1 hit");
  });

  it("but what is passed on tells all", async () => {
    await using s = await openStage(plain, { rules: [{ path: "/own", bypass: true }], ...rule });
    await s.get("/own", measured);
    await s.get("/", { headers: { cookie: `_ga=1; sid=2` } });
    await s.get("/", { method: "POST", body: "x", ...measured });
    expect(told(s)).toEqual([measured.headers.cookie, "_ga=1; sid=2", measured.headers.cookie]);
  });

  it("when it confirms what is stored; who has a cookie of his own asks for himself", async () => {
    await using s = await openStage((q, r) => {
      r.sendDate = false;
      r.setHeader("ETag", '"1"');
      if (q.headers["if-none-match"] === '"1"') r.writeHead(304).end();
      else r.writeHead(200).end(`for ${q.headers.cookie ?? "all"}`);
    }, rule);
    await s.get("/", measured);
    s.edge.skewMs = 400_000;
    expect(await s.get("/", alice)).toBe(`200 for ${alice.headers.cookie} ${passed}`);
    expect(await s.get("/", measured)).toBe("200 for all fwd=stale; fwd-status=304");
    expect(told(s)).toEqual([undefined, alice.headers.cookie, undefined]);
    expect(s.seen.map(({ headers }) => headers["if-none-match"])).toEqual([
      undefined,
      undefined,
      '"1"',
    ]);
  });

  it("in the background, where who has a cookie of his own is given nothing stale and begins nothing", async () => {
    const stale = { default: { ttl_s: 60, stale_while_revalidate_s: 600 } };
    await using s = await openStage((q, r, n) => {
      r.sendDate = false;
      r.end(`v${n} for ${q.headers.cookie === undefined ? "all" : "one"}`);
    }, stale);
    await s.get("/");
    s.edge.skewMs = 90_000;
    expect(await s.get("/", alice)).toBe(`200 v2 for one ${passed}`);
    expect(await s.get("/", measured)).toBe("200 v1 for all hit");
    await until("the refresh", () => s.edge.cache.entries.length === 2);
    expect(await s.get("/")).toBe("200 v3 for all hit");
    expect(told(s)).toEqual([undefined, alice.headers.cookie, undefined]);
  });
});

it.each([
  ["no-cache", { "Cache-Control": "no-cache" }, "no-cache"],
  ["no-cache of a field", { "Cache-Control": 'no-cache="x-user"' }, "no-cache"],
  ["a lifetime of nothing that binds", { "Cache-Control": "must-revalidate, max-age=0" }, "stale"],
  ["the same to shared caches", { "Cache-Control": "max-age=60, s-maxage=0" }, "stale"],
  [
    "no-cache to caches like this",
    { "CDN-Cache-Control": "no-cache", "Cache-Control": "max-age=9" },
    "no-cache",
  ],
  ["no-cache as it was said long ago", { Pragma: "no-cache" }, "no-cache"],
])(
  "a page that says %s is asked for by each visitor, whatever ttl_s says",
  async (_name, head, reason) => {
    await using s = await openStage(
      (q, r, n) => r.writeHead(200, head).end(`v${n} of ${String(q.headers["x-visitor"])}`),
      { default: { ttl_s: 300, stale_while_revalidate_s: 300, stale_if_error_s: 300 } },
    );
    for (const [n, visitor] of ["ann", "ben"].entries())
      expect(await s.get("/", { headers: { "x-visitor": visitor } })).toBe(
        `200 v${n + 1} of ${visitor} fwd=uri-miss; detail=${reason}`,
      );
  },
);

describe("by the origin's own word, without ttl_s", () => {
  it("what says a lifetime is anybody's, also to a cookie", async () => {
    const handler: Handler = (_q, r, n) =>
      r.writeHead(200, { "Cache-Control": "max-age=60" }).end(`v${n}`);
    await using s = await openStage(handler);
    expect(await s.get("/", alice)).toBe("200 v1 fwd=uri-miss; stored");
    expect(await s.get("/", bob)).toBe("200 v1 hit");
    expect(await s.get("/")).toBe("200 v1 hit");
  });

  const dated = { "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT" };
  /** Dates the page by the article, whoever's name is in it. */
  const byDate: Handler = (q, r) => {
    r.sendDate = false;
    if (q.headers["if-modified-since"] !== undefined) r.writeHead(304, dated).end();
    else r.writeHead(200, dated).end(`for ${q.headers.cookie === undefined ? "all" : "one"}`);
  };

  it("what is only dated is not kept of an answer to a cookie", async () => {
    await using s = await openStage(byDate);
    expect(await s.get("/", alice)).toBe("200 for one fwd=uri-miss; detail=cookie");
    expect(await s.get("/")).toBe("200 for all fwd=uri-miss; stored");
  });

  it("nor confirmed for one", async () => {
    await using s = await openStage(byDate);
    await s.get("/");
    expect(await s.get("/", alice)).toBe("200 for one fwd=request; detail=cookie");
    expect(await s.get("/", measured)).toBe("200 for all fwd=stale; fwd-status=304");
    expect(s.edge.cache.entries.length).toBe(1);
  });

  it("what varies by the cookie is kept for the same cookie", async () => {
    await using s = await openStage((q, r, n) =>
      r.writeHead(200, { ...dated, ETag: `"${n}"`, Vary: "Cookie" }).end(`of ${q.headers.cookie}`),
    );
    expect(await s.get("/", alice)).toBe(`200 of ${alice.headers.cookie} fwd=uri-miss; stored`);
    expect(await s.get("/", bob)).toBe(`200 of ${bob.headers.cookie} fwd=vary-miss; stored`);
    await s.get("/", alice);
    expect(s.seen.map(({ headers }) => headers["if-none-match"])).toEqual([
      undefined,
      undefined,
      '"1"',
    ]);
  });

  it("nobody waits for a fetch that tells another's cookie", async () => {
    const { stage, next } = await openHeld({});
    await using s = stage;
    const own = s.get("/", alice);
    const held = await next(0);
    const other = s.get("/");
    (await next(1)).writeHead(200, { "Cache-Control": "max-age=60" }).end("for all");
    expect(await other).toBe("200 for all fwd=uri-miss; stored");
    held.writeHead(200, { "Cache-Control": "private" }).end("for alice");
    expect(await own).toBe("200 for alice fwd=uri-miss; detail=private");
  });

  it("but it is joined once its answer turns out to be anybody's", async () => {
    const { stage, next } = await openHeld({});
    await using s = stage;
    const head = `GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\nCookie: sid=1\r\n\r\n`;
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    const own = raw(s.edge, head, (received) => {
      if (received.includes("begun")) resolve();
      return false;
    });
    const held = await next(0);
    held.writeHead(200, { "Cache-Control": "max-age=60" }).write("begun");
    await begun;
    const other = s.get("/");
    await s.letIn(2);
    held.end(" and ended");
    expect(await other).toBe("200 begun and ended fwd=uri-miss; collapsed");
    expect(await own).toContain("fwd=uri-miss; stored");
    expect(s.seen.length).toBe(1);
  });

  it("in the background no cookie is told", async () => {
    await using s = await openStage(
      (_q, r, n) => {
        r.sendDate = false;
        r.writeHead(200, { "Cache-Control": "max-age=60" }).end(`v${n}`);
      },
      { default: { stale_while_revalidate_s: 600 } },
    );
    await s.get("/");
    s.edge.skewMs = 90_000;
    expect(await s.get("/", alice)).toBe("200 v1 hit");
    await until("the refresh", () => s.edge.cache.entries.length === 2);
    expect(told(s)).toEqual([undefined, undefined]);
  });

  it("nor is what came of it kept as if one had been", async () => {
    await using s = await openStage(
      (_q, r, n) => {
        r.sendDate = false;
        const varying = n > 1 && { Vary: "Cookie" };
        r.writeHead(200, { "Cache-Control": "max-age=60", ...varying }).end(`v${n}`);
      },
      { default: { stale_while_revalidate_s: 600 } },
    );
    await s.get("/");
    s.edge.skewMs = 90_000;
    expect(await s.get("/", alice)).toBe("200 v1 hit");
    await until("the refresh", () => s.edge.cache.entries.length === 2);
    expect(await s.get("/")).toBe("200 v2 hit");
    expect(s.edge.cache.entries.map(({ vary }) => vary?.["cookie"])).toEqual([undefined, ""]);
  });

  it("what is kept for a cookie alone is not refreshed in the background", async () => {
    await using s = await openStage(
      (_q, r, n) => {
        r.sendDate = false;
        r.writeHead(200, { "Cache-Control": "max-age=60", Vary: "Cookie" }).end(`v${n}`);
      },
      { default: { stale_while_revalidate_s: 600 } },
    );
    await s.get("/", alice);
    s.edge.skewMs = 90_000;
    expect(await s.get("/", alice)).toBe("200 v1 hit");
    s.edge.skewMs = 700_000;
    expect(await s.get("/", alice)).toBe("200 v2 fwd=stale; stored");
    expect(s.seen.length).toBe(2);
  });

  it.each([
    ["private", 200, { "Cache-Control": "private" }, "private"],
    ["gone", 404, {}, "cookie"],
  ])(
    "what is %s to a cookie ends nothing that is stored for the others",
    async (_n, status, head, reason) => {
      await using s = await openStage(
        (q, r, n) => {
          r.sendDate = false;
          if (q.headers.cookie !== undefined) r.writeHead(status, head).end("own");
          else r.writeHead(200, { "Cache-Control": "max-age=60", ETag: '"1"' }).end(`v${n}`);
        },
        { default: { stale_while_revalidate_s: 60 } },
      );
      await s.get("/");
      s.edge.skewMs = 150_000;
      expect(await s.get("/", alice)).toBe(`${status} own fwd=stale; detail=${reason}`);
      expect(s.edge.cache.entries.length).toBe(1);
    },
  );
});
