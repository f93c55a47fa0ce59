// How an order is shown that waits because its directory could not be asked, or forgot it: it has failed, until the directory answers.

import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { acme, AcmeScene, domain } from "./acme-scene.ts";

let scene: AcmeScene;
beforeEach(async () => {
  scene = await AcmeScene.open();
  await scene.activate({ [domain]: { tls: { acme } } });
});
afterEach(async () => scene[Symbol.asyncDispose]());

/** The states that the metric counts, without those of no order. */
async function counted(): Promise<readonly string[]> {
  const line = /^accel_central_certificate_orders\{state="(\w+)"\} 1$/gm;
  return [...(await scene.registry.metrics()).matchAll(line)].map(([, state = ""]) => state);
}

test.each([
  ["before the order is placed", "/directory", "the connection broke"],
  ["when the order is placed", "/order", "the connection broke"],
  ["when it is to issue", "/finalize", "the connection broke"],
])("a directory that is away %s", async (_when, path, why) => {
  scene.directory.lost.push(path, path, path);
  await using _ = scene.start();
  const order = await scene.untilOrder("put off", ({ attempts }) => attempts === 2);
  expect(order).toMatchObject({ state: "failed", error: expect.stringContaining(why) });
  await until("counted", async () => String(await counted()) === "failed");
  await scene.untilIssued();
  await until("counted as issued", async () => String(await counted()) === "issued");
});

test("a renewal that a directory limits has failed, and its certificate is there", async () => {
  await using _ = scene.start();
  const { certificate } = await scene.untilIssued();
  const limited = { status: 429, type: "rateLimited", detail: "too many", retryAfter: "3600" };
  scene.directory.refusals.push(["/order", limited]);
  scene.forward(60 * 86_400_000);
  const order = await scene.untilOrder("limited", ({ error }) => error !== null);
  expect(order).toMatchObject({ state: "failed", certificate });
  expect(Date.parse(order.next_at) - Number(scene.api.clock)).toBeGreaterThan(3_500_000);
});

test("an order that the directory forgot has failed until another one is placed", async () => {
  scene.directory.refusals.push(["/order/0", { status: 404, type: "malformed" }]);
  await using _ = scene.start();
  const order = await scene.untilOrder("forgotten", ({ error }) => error !== null, {
    moves: false,
  });
  expect(order.state).toBe("failed");
  await scene.untilIssued();
});

test("a directory that has not finished is at it: nothing has failed", async () => {
  scene.directory.lookMs = () => 3_600_000;
  await using _ = scene.start();
  const order = await scene.untilOrder("told of", ({ error }) => error !== null);
  expect(order).toMatchObject({
    state: "ordering",
    error: "the directory has not finished the order yet",
  });
});
