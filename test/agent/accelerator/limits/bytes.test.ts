// `limits.bytes` as visitors meet it: bodies of files, of what is stored, of what is fetched and of what is passed on come whole, and no faster than the rule says.

import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import type { StagedStates } from "../../../../src/agent/accelerator/pool/staged-states.ts";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { ask, Edge, openOrigin, stateOf, type Asked, type EdgeParts } from "../edge.ts";
import { installed, tableOf, visitByHttp2 } from "../secure-clients.ts";
import { layManifest } from "../site-layout.ts";
import { ways, type Way } from "../visited.ts";

const size = 100_000;
const body = Buffer.from(Array.from({ length: size }, (_, at) => at % 251));
/** 60,000 bytes in 0.5 s, behind 40,000 that come at once. */
const slow = { rate_bytes_s: 120_000, after_bytes: 40_000 };
const leastMs = 240; // The last piece, of 30,000 bytes at most, does not wait for itself.

const rules: NonNullable<NonNullable<SiteInput["limits"]>["bytes"]> = [
  { path: "/slow/**", ...slow },
  { path: "/passed/**", ...slow },
  { path: "/chunked/**", ...slow },
  { path: "/big.txt", rate_bytes_s: 600_000, after_bytes: 1_000 },
  { path: "/later/**", rate_bytes_s: 1_024, after_bytes: size },
];

type Got = { readonly status: number; readonly body: Buffer; readonly tookMs: number };

async function open(way: Way, dir: string, parts: Partial<EdgeParts> = {}) {
  await using stack = new AsyncDisposableStack();
  const origin = stack.use(
    await openOrigin(({ url = "", method }, response) => {
      if (!url.startsWith("/chunked")) response.setHeader("content-length", size);
      response.setHeader("cache-control", url.startsWith("/passed") ? "no-store" : "max-age=60");
      if (method === "HEAD") response.end();
      else if (url.startsWith("/chunked")) {
        response.write(body.subarray(0, 70_000));
        response.end(body.subarray(70_000));
      } else response.end(body);
    }),
  );
  const { views, blobsDir } = layManifest(dir, "");
  const edge = stack.use(new Edge({ lane: way !== "node:http", blobsDir, parts }));
  const site = {
    backend: { urls: [origin.url], retries: 0 },
    compression: false,
    limits: { bytes: rules },
  };
  edge.publish({ ...stateOf(1, site, views), certificates: tableOf(installed()) });
  await edge.listen();
  const visitor =
    way === "http2" ? stack.use(await visitByHttp2(await edge.listenSecure())) : undefined;
  const get = async (path: string, asked: Pick<Asked, "headers" | "method"> = {}): Promise<Got> => {
    const startedMs = performance.now();
    const { headers = {}, method = "GET" } = asked;
    const said = { method, headers: headers as Record<string, string> };
    const got =
      visitor === undefined ? await ask(edge, path, asked) : await visitor.ask(path, said);
    return { status: got.status, body: got.body, tookMs: performance.now() - startedMs };
  };
  const owned = stack.move();
  return { edge, get, [Symbol.asyncDispose]: async () => owned.disposeAsync() };
}

describe.each(ways)("over %s", (way) => {
  test.each(["/passed/a", "/chunked/a", "/slow/a"])("%s comes whole, and slowly", async (path) => {
    using dir = tempDir();
    await using site = await open(way, dir.path);
    // Of what is stored the second one comes from the cache.
    for (let visit = 0; visit < 2; visit++) {
      const got = await site.get(path);
      expect(got.status).toBe(200);
      expect(got.body.equals(body)).toBe(true);
      expect(got.tookMs).toBeGreaterThan(leastMs);
    }
    await until("the records", () => site.edge.records.length === 2);
    for (const record of site.edge.records) {
      expect(record.response_status).toBe(200);
      expect(record.bytes_sent).toBeGreaterThan(size);
      expect(record.duration).toBeGreaterThan(leastMs / 1_000);
    }
  });

  test("a file of 300,000 bytes takes half a second", async () => {
    using dir = tempDir();
    await using site = await open(way, dir.path);
    for (let visit = 0; visit < 2; visit++) {
      const { status, body: got, tookMs } = await site.get("/big.txt");
      expect([status, got.length, got.every((byte) => byte === 120)]).toEqual([200, 300_000, true]);
      expect(tookMs).toBeGreaterThan(350);
    }
  });

  test("what has no more bytes than the free ones, and what has no body, is not slow", async () => {
    using dir = tempDir();
    await using site = await open(way, dir.path);
    await site.get("/slow/a"); // It is stored now.
    for (const [path, asked] of [
      ["/later/a", {}],
      ["/later/a", {}],
      ["/slow/a", { method: "HEAD" }],
      ["/slow/a", { headers: { range: "bytes=0-39999" } }],
      ["/other", {}],
    ] as const) {
      const { status, tookMs } = await site.get(path, asked);
      expect([200, 206]).toContain(status);
      expect(tookMs, path).toBeLessThan(leastMs);
    }
  });
});

test("the lane answers what is stored and is not slowed down, and leaves the rest", async () => {
  using dir = tempDir();
  await using site = await open("lane", dir.path);
  for (const path of ["/later/a", "/slow/a"]) await site.get(path);
  const before = { ...site.edge.quick };
  await site.get("/later/a");
  expect(site.edge.quick).toEqual({ ...before, answer: before.answer + 1 });
  await site.get("/slow/a");
  expect(site.edge.quick).toEqual({ answer: before.answer + 1, pass: before.pass + 1 });
});

test("the lane compares the paths of rules once, not for each request", async () => {
  using dir = tempDir();
  let states: StagedStates | undefined;
  const quick: EdgeParts["quick"] = (deps) => ((states = deps.states), deps);
  await using site = await open("lane", dir.path, { quick });
  const served = states?.current().route("www.example.com");
  if (served?.kind !== "served" || served.compiled === undefined) throw new Error("no site");
  const { bytes } = served.compiled.limits;
  let compared = 0;
  Object.assign(served.compiled.limits, { bytes: (path: string) => (compared++, bytes(path)) });
  for (let visit = 0; visit < 3; visit++) await site.get("/later/a");
  const [before, answered] = [compared, site.edge.quick.answer];
  expect(before).toBeGreaterThan(0);
  for (let visit = 0; visit < 5; visit++) await site.get("/later/a");
  expect(site.edge.quick.answer).toBe(answered + 5);
  expect(compared).toBe(before);
});

test("a visitor who leaves in the middle ends the answer, and the origin is let go", async () => {
  using dir = tempDir();
  await using site = await open("lane", dir.path);
  for (const path of ["/passed/a", "/big.txt"]) {
    const before = site.edge.records.length;
    const socket = connect(site.edge.port, "127.0.0.1");
    socket.write(`GET ${path} HTTP/1.1\r\nHost: www.example.com\r\n\r\n`);
    socket.once("data", () => socket.destroy());
    socket.on("error", () => {});
    const record = await until("the record", () => site.edge.records[before]);
    expect(record.response_status).toBe(499);
  }
});
