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
  // Which two of the three orders came first is chance: two of 100 names, or one of these and that of 51.
  expect([challengesMax, 151]).toContain(most);
});

test("sub-domains that are added one after the other come into one certificate", async () => {
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilIssued();
  for (const [no, label] of labels(10).entries()) {
    await scene.addSubDomain(label);
    await until("seen", async () => (await scene.orders())[0]?.names.length === no + 2);
    scene.forward(20_000);
  }
  const [waiting] = await scene.orders();
  expect(waiting).toMatchObject({ state: "ordering", error: null });
  expect(Date.parse(waiting?.next_at ?? "") - scene.api.clock.getTime()).toBe(280_000);
  scene.forward(270_000);
  const { certificate } = await scene.untilIssued();
  expect(certificate?.names.length).toBe(11);
  expect(scene.directory.orders.length).toBe(2);
});

test("a sub-domain that is gone again before it was ordered orders nothing", async () => {
  await scene.activate(ordering);
  await using _ = scene.start();
  const before = await scene.untilIssued();
  const sub = await scene.addSubDomain("shop");
  await scene.untilOrder("seen", ({ names }) => names.length === 2, { moves: false });
  await scene.activate({ ...ordering, [sub]: {} });
  const after = await scene.untilOrder("less", ({ names }) => names.length === 1);
  expect(after).toEqual(before);
  scene.forward(3_600_000);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(scene.directory.orders.length).toBe(1);
});
