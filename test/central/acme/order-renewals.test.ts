// When a certificate is ordered again: in its time, and not while it is new.

import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { acme, AcmeScene, domain } from "./acme-scene.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const ordering = { [domain]: { tls: { acme } } };

let scene: AcmeScene;
beforeEach(async () => {
  scene = await AcmeScene.open();
});
afterEach(async () => scene[Symbol.asyncDispose]());

test("a certificate is renewed in time, in the place of the one before", async () => {
  scene.directory.window = { start: "2031-06-01T00:00:00Z", end: "2031-06-03T00:00:00Z" };
  await scene.activate(ordering);
  await using _ = scene.start();
  const first = await scene.untilOrder(
    "the window is known",
    ({ certificate }) => certificate?.renew_at === "2031-06-02T00:00:00.000Z",
  );
  scene.forward(Date.parse("2031-06-02T00:00:00Z") - scene.api.clock.getTime());
  const second = await scene.untilOrder(
    "renewed",
    ({ certificate }) => certificate?.fingerprint !== first.certificate?.fingerprint,
  );
  await until("in its place", async () => {
    const fingerprints = (await scene.certificates()).map(({ fingerprint }) => fingerprint);
    return String(fingerprints) === second.certificate?.fingerprint;
  });
  expect(scene.directory.orders.map(({ replaces }) => replaces)).toEqual([
    undefined,
    expect.stringMatching(/^aXNzdWVy\.[\w-]+$/),
  ]);
  expect(scene.directory.accounts.length).toBe(1);
});

test.each([
  ["says nothing of renewals", undefined],
  ["names a window that is over", { start: "2026-01-01T00:00:00Z", end: "2026-01-02T00:00:00Z" }],
])(
  "a certificate that comes old is not ordered again at once, where the directory %s",
  async (_, window) => {
    Object.assign(scene.directory, { agedMs: 61 * dayMs, window });
    await scene.activate(ordering);
    await using _orders = scene.start();
    const { certificate } = await scene.untilIssued();
    scene.forward(6 * hourMs - 60_000);
    await scene.untilOrder(
      "rests",
      ({ next_at }) => Date.parse(next_at) > Number(scene.api.clock),
      {
        moves: false,
      },
    );
    expect(scene.directory.orders.length).toBe(1);
    scene.forward(120_000);
    await scene.untilOrder(
      "renewed",
      (order) => order.certificate?.fingerprint !== certificate?.fingerprint,
    );
    expect(scene.directory.orders.length).toBe(2);
  },
);
