// What one customer's directories, hosts and faults are to the orders of the others: nothing.

import { afterEach, beforeEach, expect, test } from "vitest";
import type { Looked } from "../../../src/central/acme/self-check.ts";
import { until } from "../../support/until.ts";
import { member } from "../api/api-harness.ts";
import { acme, AcmeScene, domain } from "./acme-scene.ts";

const ordering = { [domain]: { tls: { acme } } };

let scene: AcmeScene;
beforeEach(async () => {
  scene = await AcmeScene.open();
});
afterEach(async () => scene[Symbol.asyncDispose]());

test("a customer whose hosts never answer keeps nobody waiting", async () => {
  const hangs = Promise.withResolvers<Looked>();
  let hanging = 0;
  scene.looks = async (host) => {
    if (host === "other.example.net") return { kind: "there" };
    hanging++;
    return hangs.promise;
  };
  for (let no = 0; no < 12; no++) await scene.addOrdering(`slow${no}.example.com`);
  await using _ = scene.start();
  await until("they hang", () => hanging >= 2);
  scene.token = await scene.api.trial("other");
  const site = await scene.call("POST", "/deployment-site/", { tags: "" });
  await scene.addOrdering("other.example.net", Number(member(site, "id")));
  await scene.untilIssued();
  expect(hanging).toBe(2);
  hangs.resolve({ kind: "there" });
});

test("an order that meets a fault of our own is left alone for a minute", async () => {
  let looks = 0;
  scene.looks = () => {
    looks++;
    throw new Error("a fault");
  };
  await scene.activate(ordering);
  await using _ = scene.start();
  const isPaused = ({ next_at: next }: { readonly next_at: string }): boolean =>
    Date.parse(next) - scene.api.clock.getTime() === 60_000;
  await scene.untilOrder("left alone", isPaused, { moves: false });
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(looks).toBe(1);
  scene.looks = () => ({ kind: "there" });
  scene.forward(60_000);
  await scene.untilIssued();
});

test("a store that takes no writes is left alone for a minute", async () => {
  let writes = 0;
  scene.looks = () => {
    scene.onChange = () => {
      writes++;
      throw new Error("the disk is full");
    };
    return { kind: "there" };
  };
  await scene.activate(ordering);
  await using _ = scene.start();
  // What was found, and the pause.
  await until("tried", () => writes === 2);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(writes).toBe(2);
  scene.onChange = () => undefined;
  scene.looks = () => ({ kind: "there" });
  scene.forward(60_000);
  await scene.untilIssued();
});

test("a directory that never answers is left after a while, and told of", async () => {
  scene.walkMsMax = 50;
  scene.directory.onAsk = async (path) =>
    path.startsWith("/proof") ? new Promise<void>(() => undefined) : undefined;
  await scene.activate(ordering);
  await using _ = scene.start();
  const { state, error } = await scene.untilOrder("told", (order) => order.error !== null);
  expect([state, error]).toEqual(["failed", "it does not answer in time"]);
});

test.each([
  ["more proofs than hosts", [domain, domain], "2 proofs for 1 hosts"],
  [
    "a proof for a host of others",
    ["victim.example.org"],
    "a proof for victim.example.org, which was not ordered",
  ],
])("a directory that wants %s is refused", async (_what, proves, words) => {
  const looked: string[] = [];
  scene.looks = (host) => {
    looked.push(host);
    return { kind: "there" };
  };
  scene.directory.proves = () => proves;
  await scene.activate(ordering);
  await using _ = scene.start();
  const { error } = await scene.untilOrder("refused", ({ state }) => state === "failed");
  expect(error).toBe(`the directory asks for ${words}`);
  expect(looked).toEqual([]);
  expect(await scene.told()).toEqual([]);
});

test("an order that is over when it is placed is not placed without end", async () => {
  const { directory } = scene;
  directory.expiresMs = -1_000;
  scene.looks = () => ({ kind: "elsewhere", reason: "it answers 404" });
  await scene.activate(ordering);
  await using _ = scene.start();
  await scene.untilOrder("looked at", ({ attempts }) => attempts > 2);
  expect(directory.orders.length).toBe(1);
});
