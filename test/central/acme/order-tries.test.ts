// An order that waits is tried when somebody says so: at once where that costs its directory nothing, and otherwise within its limits.

import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { member } from "../api/api-harness.ts";
import { acme, AcmeScene, domain } from "./acme-scene.ts";

const ordering = { [domain]: { tls: { acme } } };

let scene: AcmeScene;
beforeEach(async () => {
  scene = await AcmeScene.open();
  await scene.activate(ordering);
});
afterEach(async () => scene[Symbol.asyncDispose]());

async function tried(id: number | string, token = scene.token) {
  const headers = { "idempotency-key": randomBytes(8).toString("hex") };
  return scene.api.call("POST", `/certificate-orders/${id}/try/`, { token, headers });
}

/** Hosts answer otherwise, for so long that central looks again in minutes. */
async function untilLookedRarely() {
  scene.looks = () => ({ kind: "elsewhere", reason: "it answers 404" });
  return scene.untilOrder(
    "looked at again in minutes",
    ({ state, next_at: nextAt }) =>
      state === "proving" && Date.parse(nextAt) > scene.api.clock.getTime() + 120_000,
  );
}

test("whoever has mended DNS has central look now: the certificate is issued without waiting for the next look", async () => {
  await using _ = scene.start();
  const waiting = await untilLookedRarely();
  scene.forward(10_000);
  scene.looks = () => ({ kind: "there" });
  const { status, body } = await tried(waiting.id);
  expect(status).toBe(200);
  expect(body).toMatchObject({ id: waiting.id, next_at: scene.api.clock.toISOString() });
  await scene.untilOrder("the directory is asked", ({ state }) => state !== "proving", {
    moves: false,
  });
  await scene.untilIssued();
  const rests = await tried(waiting.id);
  expect([rests.status, member(rests.body, "detail")]).toEqual([
    409,
    expect.stringMatching(/waits for nothing that could be tried: it is issued, and goes on at 20/),
  ]);
  const { body: audit } = await scene.api.call("GET", "/audit/", { token: scene.token });
  expect(JSON.stringify(audit)).toContain('"tryCertificateOrder"');
});

test("it is looked at again once, and then after a few seconds at the earliest", async () => {
  await using _ = scene.start();
  const { id } = await untilLookedRarely();
  scene.forward(10_000);
  let looks = 0;
  scene.looks = () => {
    looks++;
    return { kind: "elsewhere", reason: "it answers 403" };
  };
  expect((await tried(id)).status).toBe(200);
  await scene.untilOrder("looked at", ({ error }) => error?.includes("403") === true, {
    moves: false,
  });
  const soon = await tried(id);
  expect([soon.status, soon.headers["retry-after"]]).toEqual([429, "5"]);
  expect(member(soon.body, "detail")).toMatch(
    /^central looked a moment ago whether the hosts of certificate order \d+ answer: it may be tried from 20/,
  );
  expect(looks).toBe(1);
  scene.forward(5_000);
  expect((await tried(id)).status).toBe(200);
});

test("what the directory refused is tried again two minutes later, not before", async () => {
  scene.directory.looks = () => "invalid";
  await using _ = scene.start();
  const failed = await scene.untilOrder("failed", ({ state }) => state === "failed");
  const first = await tried(failed.id);
  expect([first.status, member(first.body, "detail")]).toEqual([
    429,
    expect.stringMatching(
      /its directory limits requests, and counts failures: it may be tried from 20/,
    ),
  ]);
  scene.directory.looks = () => "valid";
  scene.forward(120_000);
  expect(scene.api.clock.getTime()).toBeLessThan(Date.parse(failed.next_at));
  expect((await tried(failed.id)).status).toBe(200);
  await scene.untilIssued();
});

test("an order is its customer's, and its domain's", async () => {
  await using _ = scene.start();
  const { id } = await untilLookedRarely();
  const make = async (role: string, domains?: readonly string[]): Promise<string> => {
    const asked = { name: role, role, ...(domains && { domains }) };
    return member(await scene.call("POST", "/tokens/", asked), "token");
  };
  await scene.call("POST", "/domain/", { name: "other.example.com" });
  expect((await tried(id, await scene.api.trial("stranger"))).status).toBe(404);
  expect((await tried("x")).status).toBe(404);
  expect((await tried(id, await make("write", ["other.example.com"]))).status).toBe(404);
  expect((await tried(id, await make("read"))).status).toBe(403);
  scene.forward(10_000);
  expect((await tried(id, await make("write", [domain]))).status).toBe(200);
});
