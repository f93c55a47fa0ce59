// What a soft clear has made stale: served only where a rule for stale answers allows it, for as long as it allows, until the origin has confirmed or replaced it.

import { expect, test } from "vitest";
import { until } from "../../../support/until.ts";
import { ask } from "../edge.ts";
import { fresh, openStage, type Handler, type Stage } from "../stage.ts";

const everything = (): boolean => true;
const softly = ({ edge }: Stage): void =>
  edge.cache.clearSoftly(everything, Date.now() + edge.skewMs);

/** Confirms what it said last as long as `version` is the same. */
const versioned =
  (version: () => string): Handler =>
  (request, response) => {
    const etag = `"${version()}"`;
    response.sendDate = false;
    const fields = { "Cache-Control": "max-age=60", ETag: etag };
    if (request.headers["if-none-match"] === etag) response.writeHead(304, fields).end();
    else response.writeHead(200, fields).end(version());
  };

test("without a rule for stale answers the origin is asked, and what it confirms is fresh again", async () => {
  let version = "one";
  await using s = await openStage(versioned(() => version));
  await s.get("/a");
  expect(await s.get("/a")).toBe("200 one hit");
  softly(s);
  expect(await s.get("/a")).toBe("200 one fwd=stale; fwd-status=304");
  expect(await s.get("/a")).toBe("200 one hit");
  softly(s);
  version = "two";
  expect(await s.get("/a")).toBe("200 two fwd=stale; stored");
  expect(await s.get("/a")).toBe("200 two hit");
  expect(s.seen).toHaveLength(3);
  expect(s.edge.records.map(({ cache }) => cache)).toEqual([
    "miss",
    "hit",
    "miss",
    "hit",
    "miss",
    "hit",
  ]);
});

test("stale-while-revalidate counts from the clear", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await using s = await openStage(
    (q, r, n) => void (n === 1 ? Promise.resolve() : released).then(() => fresh(q, r, n)),
    { default: { stale_while_revalidate_s: 10 } },
  );
  await s.get("/a");
  s.edge.skewMs = 20_000;
  softly(s);
  s.edge.skewMs = 25_000;
  const { text, headers } = await ask(s.edge, "/a");
  // The clock goes on meanwhile.
  expect([text, headers["cache-status"]]).toEqual([
    "v1",
    expect.stringMatching(/^accel-agent; hit; ttl=-[5-9]$/),
  ]);
  s.edge.skewMs = 31_000;
  const late = s.get("/a");
  await until("it is asked for", () => s.seen.length === 2);
  release();
  expect(await late).toMatch(/^200 v2 fwd=stale/);
  expect(await s.get("/a")).toBe("200 v2 hit");
  expect(s.edge.records.map(({ cache }) => cache)).toEqual(["miss", "stale", "miss", "hit"]);
});

test("what is stale by a soft clear is not told to browsers and other caches as fresh", async () => {
  await using s = await openStage(fresh, { default: { stale_while_revalidate_s: 10 } });
  await s.get("/a");
  s.edge.skewMs = 5_000;
  softly(s);
  const { text, headers } = await ask(s.edge, "/a");
  expect([text, headers["cache-status"]]).toEqual([
    "v1",
    expect.stringMatching(/^accel-agent; hit; ttl=(?:0|-\d)$/),
  ]);
  // They would go on showing it long after it was replaced here.
  const [, lifetimeS = "0"] = /max-age=(\d+)/.exec(String(headers["cache-control"])) ?? [];
  expect(Number(lifetimeS)).toBeLessThanOrEqual(Number(headers["age"]));
});

test("stale-if-error counts from the clear, and nothing else hides an error", async () => {
  const failing: Handler = (q, r, n) => {
    if (n === 1) fresh(q, r, n);
    else r.writeHead(503).end("trouble");
  };
  await using s = await openStage(failing, { default: { stale_if_error_s: 10 } });
  await s.get("/a");
  softly(s);
  s.edge.skewMs = 5_000;
  expect(await s.get("/a")).toBe("200 v1 fwd=stale; fwd-status=503; detail=stale-if-error");
  s.edge.skewMs = 12_000;
  expect(await s.get("/a")).toBe("503 trouble fwd=stale; detail=no-freshness");
  await using t = await openStage(failing);
  await t.get("/a");
  softly(t);
  expect(await t.get("/a")).toBe("503 trouble fwd=stale; detail=no-freshness");
});

test("a clear while a body is being opened is heeded: of what was fresh, and of what was to stand in", async () => {
  await using s = await openStage(fresh);
  await s.get("/a");
  s.edge.cache.whileOpening = () => {
    s.edge.cache.whileOpening = undefined;
    softly(s);
  };
  expect(await s.get("/a")).toBe("200 v2 fwd=stale; stored");
  await using t = await openStage((q, r, n) => {
    if (n === 1) fresh(q, r, n);
    else r.writeHead(503).end("trouble");
  });
  await t.get("/a");
  t.edge.cache.whileOpening = () => {
    t.edge.cache.whileOpening = undefined;
    softly(t);
  };
  // It was fresh, so it could have stood in; by then it is stale, and nothing allows that.
  const asked = { headers: { "cache-control": "max-age=0" } };
  t.edge.skewMs = 2_000;
  expect(await t.get("/a", asked)).toMatch(/^503 trouble/);
});

test("a confirmation that was asked for before the clear confirms nothing after it", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const origin = versioned(() => "one");
  await using s = await openStage((q, r, n) => {
    if (n === 2) void released.then(() => origin(q, r, n));
    else origin(q, r, n);
  });
  await s.get("/a");
  s.edge.skewMs = 61_000;
  const late = s.get("/a");
  await until("it is asked for", () => s.seen.length === 2);
  softly(s);
  release();
  // Its visitor is answered by another question.
  expect(await late).toBe("200 one fwd=stale; fwd-status=304");
  expect(s.seen).toHaveLength(3);
  expect(await s.get("/a")).toBe("200 one hit");
});

test("a HEAD confirms it as well", async () => {
  await using s = await openStage(versioned(() => "one"));
  await s.get("/a");
  softly(s);
  const { status, headers } = await ask(s.edge, "/a", { method: "HEAD" });
  expect([status, headers["cache-status"]]).toEqual([
    200,
    expect.stringContaining("fwd=stale; fwd-status=304"),
  ]);
  expect(await s.get("/a")).toBe("200 one hit");
});

test("a HEAD that was asked for before the clear confirms nothing after it", async () => {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const origin = versioned(() => "one");
  await using s = await openStage((q, r, n) => {
    if (n === 2) void released.then(() => origin(q, r, n));
    else origin(q, r, n);
  });
  await s.get("/a");
  s.edge.skewMs = 61_000;
  const late = ask(s.edge, "/a", { method: "HEAD" });
  await until("it is asked for", () => s.seen.length === 2);
  softly(s);
  release();
  expect((await late).status).toBe(200);
  // It is answered by another question.
  expect(s.seen).toHaveLength(3);
  expect(await s.get("/a")).toBe("200 one hit");
});

test("what is confirmed for one visitor alone answers him, and is stale to the others", async () => {
  await using s = await openStage(versioned(() => "one"));
  await s.get("/a");
  softly(s);
  const asked = { headers: { "cache-control": "no-store" } };
  expect(await s.get("/a", asked)).toBe("200 one fwd=stale; fwd-status=304");
  expect(await s.get("/a")).toBe("200 one fwd=stale; fwd-status=304");
  expect(s.seen).toHaveLength(3);
  expect(await s.get("/a")).toBe("200 one hit");
});
