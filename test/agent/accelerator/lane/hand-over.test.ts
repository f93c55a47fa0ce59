// A sample of the matrix of hand-overs: every kind over every way and in every place whole, and in every split that comes up as the days go by; the bench `hand-over`
// plays all of it.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "node:net";
import { host, openEdge } from "../edge.ts";
import { RawVisitor } from "../../../support/raw-visitor.ts";
import { cutsOf, HandOverStage, kinds, places, ways } from "./hand-over.ts";

/** Every so many-th place to cut at, and another third piece. */
const stride = 11;

let stage: HandOverStage;
let without: HandOverStage;
beforeAll(async () => {
  stage = await HandOverStage.open();
  without = await HandOverStage.open(false);
});
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  await without[Symbol.asyncDispose]();
});

describe.each(kinds.map((kind, no) => ({ name: kind.name, kind, no })))("$name", ({ kind, no }) => {
  test("is answered whole, in its turn, and recorded once", async () => {
    for (const way of ways)
      for (const place of places) await expect(stage.play(kind, way, place, [])).resolves.toBe(undefined); // prettier-ignore
  });

  test("is answered in two and three pieces", { timeout: 120_000 }, async () => {
    const cuts = cutsOf(kind).filter((_, at) => at === 0 || at % stride === no % stride);
    for (const [at, cut] of cuts.entries()) {
      const [way, place] = [ways[at % ways.length] ?? "plain", places[at % places.length] ?? "after"]; // prettier-ignore
      const next = cuts[at + 1];
      await stage.play(kind, way, place, [cut]);
      if (next !== undefined) await stage.play(kind, "plain", place, [cut, next]);
    }
    expect(cuts.length).toBeGreaterThan(0);
  });

  test("is answered alike without a lane", async () => {
    for (const place of places)
      await expect(without.play(kind, "plain", place, [])).resolves.toBe(undefined);
  });
});

test("hits before and behind were answered in the lane", () => {
  expect(stage.quick).toBeGreaterThan(kinds.length * ways.length * places.length);
  expect(without.quick).toBe(0);
});

test("CONNECT waits for the answer before it", async () => {
  await using edge = await openEdge({ site: {}, lane: false });
  const socket = connect(edge.port, "127.0.0.1");
  let said = "";
  socket.on("data", (bytes: Buffer) => (said += bytes.toString("latin1")));
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  socket.once("close", () => resolve());
  socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\nCONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n`);
  await closed;
  expect(said.match(/HTTP\/1.1 \d+/g)).toEqual(["HTTP/1.1 404", "HTTP/1.1 405"]);
  expect(edge.records.map(({ response_status: status }) => status)).toEqual([404, 405]);
});

test("a site's own Date is the only one of a redirect", async () => {
  const date = "Tue, 01 Jan 2030 00:00:00 GMT";
  const redirects = [{ from: "/old", to: "/new", status: 301 as const }];
  await using edge = await openEdge({ site: { headers: { set: { Date: date } }, redirects } });
  using visitor = await RawVisitor.open({ port: edge.port });
  visitor.write(`GET /old HTTP/1.1\r\nHost: ${host}\r\n\r\n`, ["GET"]);
  await visitor.final(1);
  expect(edge.quick.answer).toBe(1);
  expect(visitor.answers[0]?.head.match(/^date: .*$/gim)).toEqual([`Date: ${date}`]);
});
