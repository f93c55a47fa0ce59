// Stale answers: served at once while one fetch goes on behind the visitors' back, and in place of errors; never longer than allowed, never what is
// another's. And cookies that a rule strips.

import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import type { CacheInput } from "../../../../src/core/serving/effective-devlove.ts";
import { until } from "../../../support/until.ts";
import { ask, type Answer } from "../edge.ts";
import { fresh, openStage, type Handler } from "../stage.ts";

const lasting = { "Cache-Control": "max-age=60" };

const statusOf = ({ headers }: Answer): string | undefined => headers["cache-status"];

describe("stale-while-revalidate", () => {
  const swr: Handler = (_q, r, n) => {
    r.sendDate = false;
    r.writeHead(200, { "Cache-Control": "max-age=60, stale-while-revalidate=30" }).end(`v${n}`);
  };

  it("serves at once and fetches once behind the visitors' back", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await using s = await openStage((q, r, n) => {
      if (n === 1) swr(q, r, n);
      else void released.then(() => swr(q, r, n));
    });
    await s.get("/a");
    s.edge.skewMs = 70_000;
    const answers = await Promise.all(Array.from({ length: 5 }, async () => ask(s.edge, "/a")));
    release();
    expect(new Set(answers.map((one) => `${one.text} ${statusOf(one)}`))).toEqual(
      new Set(["v1 accel-agent; hit; ttl=-10"]),
    );
    await until("the refresh", () => s.edge.cache.entries.length === 2);
    expect(s.seen.length).toBe(2);
    expect(await s.get("/a")).toBe("200 v2 hit");
    expect(s.edge.records.map(({ cache }) => cache)).toEqual([
      "miss",
      ...Array.from({ length: 5 }, () => "stale"),
      "hit",
    ]);
  });

  it("ends with its time, and where it is forbidden", async () => {
    await using s = await openStage(swr);
    await s.get("/a");
    s.edge.skewMs = 91_000;
    expect(await s.get("/a")).toBe("200 v2 fwd=stale; stored");
    await using t = await openStage((_q, r, n) => {
      r.sendDate = false;
      const value = "max-age=60, must-revalidate, stale-while-revalidate=30";
      r.writeHead(200, { "Cache-Control": value }).end(`v${n}`);
    });
    await t.get("/a");
    t.edge.skewMs = 70_000;
    expect(await t.get("/a")).toBe("200 v2 fwd=stale; stored");
  });

  it("is not done while clears may be unknown", async () => {
    await using s = await openStage(swr);
    await s.get("/a");
    s.edge.skewMs = 70_000;
    s.edge.cache.isConfirmed = false;
    expect(await s.get("/a")).toBe("200 v2 fwd=stale; stored");
  });

  it("follows the site's rule", async () => {
    await using s = await openStage(fresh, { default: { stale_while_revalidate_s: 100 } });
    await s.get("/a");
    s.edge.skewMs = 150_000;
    expect(await s.get("/a")).toBe("200 v1 hit");
    await until("the refresh", () => s.seen.length === 2);
    expect(s.seen[1]?.headers["if-none-match"]).toBe('"v1"');
  });
});

describe("stale-if-error", () => {
  const failing = (status: number | "cut"): Handler => {
    return (q, r, n) => {
      if (n === 1) fresh(q, r, n);
      else if (status === "cut") r.destroy();
      else r.writeHead(status, lasting).end("trouble");
    };
  };

  it.each([["cut" as const], [500], [503]])("hides %s", async (status) => {
    await using s = await openStage(failing(status), { default: { stale_if_error_s: 100 } });
    await s.get("/a");
    s.edge.skewMs = 100_000;
    const stale = await ask(s.edge, "/a");
    expect([stale.status, stale.text]).toEqual([200, "v1"]);
    const said = status === "cut" ? "" : `fwd-status=${status}; `;
    expect(statusOf(stale)).toBe(`accel-agent; fwd=stale; ${said}detail=stale-if-error; ttl=-40`);
    // Nor is the error stored over it.
    expect((await ask(s.edge, "/a")).text).toBe("v1");
    s.edge.skewMs = 161_000;
    expect((await ask(s.edge, "/a")).status).toBe(status === "cut" ? 502 : status);
  });

  it("does not hide what the origin means, and does not bring back what that has ended", async () => {
    await using s = await openStage(
      (q, r, n) => {
        if (n === 1) fresh(q, r, n);
        else r.writeHead(n === 2 ? 410 : 503, { "Cache-Control": "no-store" }).end("gone");
      },
      { default: { stale_if_error_s: 100 } },
    );
    await s.get("/a");
    s.edge.skewMs = 100_000;
    expect(await s.get("/a")).toBe("410 gone fwd=stale; detail=no-store");
    expect(await s.get("/a")).toBe("503 gone fwd=uri-miss; detail=no-store");
  });

  it("goes on after an answer that is about the request only", async () => {
    await using s = await openStage(
      (q, r, n) => {
        if (n === 1) fresh(q, r, n);
        else r.writeHead(n === 2 ? 429 : 503).end("trouble");
      },
      { default: { stale_if_error_s: 100 } },
    );
    await s.get("/a");
    s.edge.skewMs = 100_000;
    expect(await s.get("/a")).toBe("429 trouble fwd=stale; detail=no-freshness");
    expect((await ask(s.edge, "/a")).text).toBe("v1");
  });

  it("is the origin's own error, whole, where what would stand in is cleared meanwhile", async () => {
    const held: ServerResponse[] = [];
    await using s = await openStage(
      (q, r, n) => {
        if (n === 1) fresh(q, r, n);
        else held.push(r);
      },
      { default: { stale_if_error_s: 100 } },
    );
    await s.get("/a");
    s.edge.skewMs = 100_000;
    const answer = ask(s.edge, "/a");
    const first = await until("it is asked", () => held[0]);
    s.edge.cache.clear(() => true);
    first.writeHead(500, { "Content-Length": 9 }).end("trouble 1");
    (await until("it is asked again", () => held[1])).writeHead(500).end("trouble 2");
    expect([(await answer).status, (await answer).text]).toEqual([500, "trouble 2"]);
  });

  it("gives nobody another's error page", async () => {
    const held: ServerResponse[] = [];
    await using s = await openStage(
      (q, r, n) => {
        if (n === 1) fresh(q, r, n);
        else held.push(r);
      },
      { default: { stale_if_error_s: 100 } },
    );
    await s.get("/a");
    s.edge.skewMs = 100_000;
    const both = [ask(s.edge, "/a"), ask(s.edge, "/a")];
    await s.letIn(3);
    (await until("it is asked", () => held[0]))
      .writeHead(500, { "Set-Cookie": "session=1" })
      .end("trouble of session 1");
    for (const answer of await Promise.all(both))
      expect([answer.status, answer.text, answer.headers["set-cookie"]]).toEqual([
        200,
        "v1",
        undefined,
      ]);
  });

  it("does not hide an error from credentials that the stored answer is not for", async () => {
    await using s = await openStage(failing(500), { default: { stale_if_error_s: 100 } });
    await s.get("/a");
    s.edge.skewMs = 100_000;
    expect((await ask(s.edge, "/a", { headers: { authorization: "x" } })).status).toBe(500);
  });
});

describe("a rule that ignores cookies", () => {
  const rule: CacheInput = { ttl_s: 60, ignore_set_cookie: true };
  const cookies = (answers: readonly Answer[]): readonly unknown[] =>
    answers.map(({ headers }) => headers["set-cookie"]);

  it("strips them of all who share a fetch, also the first, and of what is stored", async () => {
    const held: ServerResponse[] = [];
    await using s = await openStage((_q, r) => void held.push(r), { default: rule });
    const early = Array.from({ length: 5 }, async () => ask(s.edge, "/a"));
    const response = await until("it is asked", () => held[0]);
    await s.letIn(5);
    response.writeHead(200, { "Set-Cookie": "session=1" }).end("for all");
    const answers = [...(await Promise.all(early)), await ask(s.edge, "/a")];
    expect(answers.map(({ text }) => text)).toEqual(answers.map(() => "for all"));
    expect(cookies(answers)).toEqual(answers.map(() => undefined));
    const names = s.edge.cache.entries.flatMap(({ headers }) => headers.map(([name]) => name));
    expect(names.map((name) => name.toLowerCase())).not.toContain("set-cookie");
    expect(held.length).toBe(1);
  });

  it("strips them of a confirmation", async () => {
    await using s = await openStage(
      (_q, r, n) => {
        const head = { ETag: '"e"', "Set-Cookie": `session=${n}` };
        r.sendDate = false;
        r.writeHead(n === 1 ? 200 : 304, head).end(n === 1 ? "v1" : undefined);
      },
      { default: rule },
    );
    const first = await ask(s.edge, "/a");
    s.edge.skewMs = 61_000;
    const second = await ask(s.edge, "/a");
    const third = await ask(s.edge, "/a");
    expect([statusOf(second), statusOf(third)]).toEqual([
      "accel-agent; fwd=stale; fwd-status=304; ttl=60",
      "accel-agent; hit; ttl=60",
    ]);
    expect(cookies([first, second, third])).toEqual([undefined, undefined, undefined]);
  });

  it.each<[string, Record<string, string>, Record<string, string>]>([
    ["private", { "Cache-Control": "private" }, {}],
    ["no-store", { "Cache-Control": "no-store" }, {}],
    ["to credentials", {}, { authorization: "x" }],
  ])("does not store what is %s, and leaves it its cookie", async (_name, head, headers) => {
    await using s = await openStage(
      (_q, r, n) => r.writeHead(200, { ...head, "Set-Cookie": `session=${n}` }).end(`v${n}`),
      { default: rule },
    );
    const answers = [await ask(s.edge, "/a", { headers }), await ask(s.edge, "/a", { headers })];
    expect(answers.map(({ text }) => text)).toEqual(["v1", "v2"]);
    expect(cookies(answers)).toEqual(["session=1", "session=2"]);
    expect(s.edge.cache.entries).toEqual([]);
  });
});
