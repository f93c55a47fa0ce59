// Domains of many hosts: which order names which, and how many are proved at once.

import { afterEach, beforeEach, expect, test } from "vitest";
import { challengesMax } from "../../../src/wire/challenges.ts";
import { until } from "../../support/until.ts";
import { acme, AcmeScene, domain } from "./acme-scene.ts";

const ordering = { [domain]: { tls: { acme } } };

let scene: AcmeScene;
beforeEach(async () => {
  scene = await AcmeScene.open();
});
afterEach(async () => scene[Symbol.asyncDispose]());

const labels = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, no) => `s${String(no).padStart(3, "0")}`);

test("challenges that find no room are waited with, and none is cut", async () => {
  await scene.addSubDomains(labels(250));
  const { directory } = scene;
  scene.looks = () => ({ kind: "elsewhere", reason: "not yet" });
  await scene.activate(ordering);
  await using _ = scene.start();
  const isWaiting = async (): Promise<boolean> => {
    scene.forward(1_000);
    return (await scene.orders()).some(({ error }) => error?.startsWith("waits for room") === true);
  };
  await until("one waits", isWaiting);
  await until("the others are proved", async () => {
    const orders = await scene.orders();
    return orders.filter(({ state }) => state === "proving").length === 2;
  });
  const asked = directory.asked.length;
  for (let seconds = 0; seconds < 60; seconds += 5) {
    scene.forward(5_000);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(directory.asked.length).toBe(asked);
  scene.looks = () => ({ kind: "there" });
  await until("all are issued", async () => {
    scene.forward(1_000);
    const orders = await scene.orders();
    return orders.length === 3 && orders.every(({ state }) => state === "issued");
  });
  const most = Math.max(...(await scene.told()).map((tokens) => tokens.length));
  expect(most).toBe(challengesMax);
});
