// What was cached under the rules of an earlier document, once another one is in force.

import type { ServerResponse } from "node:http";
import { expect, it } from "vitest";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import type { ServedHost, ServingState } from "../../../../src/core/serving/serving-state.ts";
import { until } from "../../../support/until.ts";
import { ask, openOrigin, stateOf } from "../edge.ts";
import { fresh, openStage, type Handler, type Stage } from "../stage.ts";

type Rules = NonNullable<SiteInput["cache"]>;

let versions = 1;
function change({ edge, origin }: Stage, cache: Rules): void {
  edge.publish(stateOf(++versions, { backend: { urls: [origin.url], retries: 0 }, cache }));
}

/** The one with a part of the other, and the other's version. All else of it are the same objects. */
function withPart(
  state: ServingState,
  { version, domains: [other] }: ServingState,
  part: "backend" | "cache",
): ServingState {
  const site = other?.hosts[0]?.site;
  const hosts = (of: readonly ServedHost[]): readonly ServedHost[] =>
    of.map((one) => {
      if (one.site === null || site === null || site === undefined) throw new Error("no site");
      return { ...one, site: { ...one.site, [part]: site[part] } };
    });
  const domains = state.domains.map((domain) => ({ ...domain, hosts: hosts(domain.hosts) }));
  return { ...state, version, domains };
}

const plain: Handler = (_q, r, n) => {
  r.sendDate = false;
  r.end(`v${n}`);
};

it("lasts as long as the new rule says, or the origin where none speaks any more", async () => {
  await using s = await openStage(fresh, { default: { ttl_s: 3_600 } });
  await s.get("/a");
  await s.get("/b");
  s.edge.skewMs = 50_000;
  change(s, { default: { ttl_s: 30 } });
  expect(await s.get("/a")).toBe("200 v3 fwd=stale; stored");
  change(s, {});
  expect((await ask(s.edge, "/b")).headers["cache-status"]).toBe("accel-agent; hit; ttl=10");
  s.edge.skewMs = 60_000;
  expect(await s.get("/b")).toBe("200 v4 fwd=stale; stored");
});

it("is not prolonged by a longer rule", async () => {
  await using s = await openStage(plain, { default: { ttl_s: 60 } });
  await s.get("/a");
  s.edge.skewMs = 70_000;
  change(s, { default: { ttl_s: 3_600 } });
  expect(await s.get("/a")).toBe("200 v2 fwd=stale; stored");
});

it("is dynamic at once where the new rule says so", async () => {
  await using s = await openStage(plain, { default: { ttl_s: 60 } });
  await s.get("/a");
  change(s, { default: { bypass: true } });
  expect(await s.get("/a")).toBe("200 v2 fwd=bypass");
});

it("is gone where an unsafe request came while it was dynamic, also what the answer to that names", async () => {
  await using s = await openStage(
    (q, r, n) => {
      if (q.method === "POST") r.writeHead(201, { Location: "/list" }).end();
      else plain(q, r, n);
    },
    { default: { ttl_s: 60 } },
  );
  for (const path of ["/form", "/list", "/other"]) await s.get(path);
  change(s, { default: { bypass: true } });
  expect(await s.get("/form", { method: "POST", body: "x" })).toBe("201  fwd=method");
  change(s, { default: { ttl_s: 60 } });
  expect(await s.get("/form")).toBe("200 v5 fwd=uri-miss; stored");
  expect(await s.get("/list")).toBe("200 v6 fwd=uri-miss; stored");
  expect(await s.get("/other")).toBe("200 v3 hit");
});

it("stands in and is served stale only while the new rules allow it", async () => {
  await using s = await openStage(
    (q, r, n) => {
      if (n === 1) plain(q, r, n);
      else r.writeHead(500).end("trouble");
    },
    { default: { ttl_s: 60, stale_while_revalidate_s: 600, stale_if_error_s: 600 } },
  );
  await s.get("/a");
  s.edge.skewMs = 100_000;
  change(s, { default: { ttl_s: 60, stale_if_error_s: 600 } });
  expect(await s.get("/a")).toBe("200 v1 fwd=stale; fwd-status=500; detail=stale-if-error");
  change(s, { default: { ttl_s: 60 } });
  expect(await s.get("/a")).toBe("500 trouble fwd=stale; detail=no-freshness");
});

it.each(["backend", "cache"] as const)(
  "is not taken from a fetch that was begun under another %s",
  async (part) => {
    const held: ServerResponse[] = [];
    await using s = await openStage((_q, r) => void held.push(r));
    await using other = await openOrigin((_q, r) => void held.push(r));
    const cache: Rules = { default: { ttl_s: 60 } };
    const old = stateOf(++versions, { backend: { urls: [s.origin.url], retries: 0 }, cache });
    const next = stateOf(++versions, { backend: { urls: [other.url], retries: 0 }, cache });
    s.edge.publish(old);
    const before = ask(s.edge, "/a");
    const first = await until("it is asked", () => held[0]);
    s.edge.publish(withPart(old, next, part));
    const after = ask(s.edge, "/a");
    await s.letIn(2);
    first.end("old");
    (await until("it is asked again", () => held[1])).end("new");
    expect([(await before).text, (await after).text]).toEqual(["old", "new"]);
  },
);

it("is what another backend answered, until its time ends", async () => {
  await using s = await openStage(fresh);
  await using other = await openOrigin((_q, r) => r.end("of the new backend"));
  await s.get("/a");
  s.edge.publish(stateOf(++versions, { backend: { urls: [other.url] } }));
  expect(await s.get("/a")).toBe("200 v1 hit");
  s.edge.skewMs = 60_000;
  expect((await ask(s.edge, "/a")).text).toBe("of the new backend");
});

it("is not taken for another query that the new rule tells apart", async () => {
  await using s = await openStage((q, r, n) => r.end(`v${n} of ${q.url}`), {
    default: { ttl_s: 60, query: { ignore: ["id", "utm_*"] } },
  });
  expect(await s.get("/a?id=5")).toBe("200 v1 of /a?id=5 fwd=uri-miss; stored");
  expect(await s.get("/a")).toBe("200 v1 of /a?id=5 hit");
  change(s, { default: { ttl_s: 60, query: { ignore: ["utm_*"] } } });
  expect(await s.get("/a")).toBe("200 v2 of /a fwd=vary-miss; stored");
  expect(await s.get("/a?utm_source=x")).toBe("200 v2 of /a hit");
  expect(await s.get("/a?id=5")).toBe("200 v3 of /a?id=5 fwd=uri-miss; stored");
  change(s, { default: { ttl_s: 60 } });
  expect(await s.get("/a")).toBe("200 v4 of /a fwd=vary-miss; stored");
  // What was stored by its whole query is what any rule would have.
  change(s, { default: { ttl_s: 60, query: { keep: ["page"] } } });
  expect(await s.get("/a?id=5")).toBe("200 v4 of /a hit");
});

it.each(["GET", "HEAD"])(
  "is not confirmed by an answer for a query that its rule told apart (%s)",
  async (method) => {
    await using s = await openStage((q, r) => {
      r.setHeader("etag", '"one for all"');
      r.setHeader("x-url", q.url ?? "");
      if (q.headers["if-none-match"] !== undefined) r.statusCode = 304;
      r.end(r.statusCode === 304 ? undefined : `of ${q.url}`);
    });
    const urlOf = async (path: string, by = "GET"): Promise<unknown> =>
      (await ask(s.edge, path, { method: by })).headers["x-url"];
    change(s, { default: { ttl_s: 60 } });
    expect(await urlOf("/a")).toBe("/a");
    change(s, { default: { ttl_s: 60, query: { keep: ["id"] } } });
    s.edge.skewMs = 70_000;
    expect(await urlOf("/a?page=1", method)).toBe("/a?page=1");
    change(s, { default: { ttl_s: 60 } });
    expect(await urlOf("/a")).toBe("/a");
    // For its own query it may be confirmed under any rule.
    s.edge.skewMs = 140_000;
    change(s, { default: { ttl_s: 60, query: { keep: ["id"] } } });
    const confirmed = await ask(s.edge, "/a");
    expect(confirmed.headers["cache-status"]).toContain("fwd-status=304");
  },
);

it("whose query was sorted answers in one order, which no other rule takes for its own", async () => {
  const sorting = { default: { ttl_s: 60, query: { ignore: ["utm_*"], sort: true } } };
  await using s = await openStage((q, r, n) => {
    r.sendDate = false;
    r.end(`v${n} ${q.url}`);
  }, sorting);
  expect(await s.get("/a?b=2&utm_x=1&a=1")).toBe("200 v1 /a?b=2&utm_x=1&a=1 fwd=uri-miss; stored");
  for (const query of ["a=1&b=2", "b=2&a=1", "b=2&a=1&utm_y=2"])
    for (let n = 0; n < 2; n++)
      expect(await s.get(`/a?${query}`)).toBe("200 v1 /a?b=2&utm_x=1&a=1 hit");
  expect(s.edge.cache.entries.map(({ query }) => query)).toEqual(["a=1&b=2"]);
  expect(await s.get("/a?a=1&a=2")).toBe("200 v2 /a?a=1&a=2 fwd=uri-miss; stored");
  expect(await s.get("/a?a=2&a=1")).toBe("200 v3 /a?a=2&a=1 fwd=uri-miss; stored");
  change(s, { default: { ttl_s: 60, query: { ignore: ["utm_*"] } } });
  expect(await s.get("/a?a=1&b=2")).toBe("200 v4 /a?a=1&b=2 fwd=vary-miss; stored");
  change(s, sorting);
  expect(await s.get("/a?b=2&a=1")).toBe("200 v1 /a?b=2&utm_x=1&a=1 hit");
});
