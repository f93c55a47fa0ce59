// The bearer token over its life: one question for all who ask, renewed in time, kept when it cannot be renewed yet.

import { expect, test } from "vitest";
import { AccelError, type FaultCode } from "../../../src/core/faults.ts";
import { TokenSource } from "../../../src/agent/link/session.ts";

function harness() {
  const state = { nowMs: 0, asked: 0, fault: undefined as FaultCode | undefined };
  const source = new TokenSource(
    async () => {
      state.asked += 1;
      await Promise.resolve();
      if (state.fault !== undefined) throw new AccelError(state.fault, "no");
      return {
        access_token: `token-${String(state.asked).padStart(10, "0")}`,
        token_type: "Bearer" as const,
        expires_in: 900,
        deployment_site_id: 7,
        epoch: "e".repeat(16),
      };
    },
    () => state.nowMs,
  );
  return { source, state };
}

test("many who ask together cause one question", async () => {
  const { source, state } = harness();
  const tokens = await Promise.all(Array.from({ length: 20 }, async () => source.get()));
  expect(state.asked).toBe(1);
  expect(new Set(tokens).size).toBe(1);
  expect(tokens[0]).toMatchObject({ deploymentSiteId: 7, epoch: "e".repeat(16) });
});

test("it is renewed at two thirds of its life", async () => {
  const { source, state } = harness();
  const first = await source.get();
  state.nowMs = 599_999;
  expect(await source.get()).toBe(first);
  state.nowMs = 600_000;
  expect(await source.get()).not.toBe(first);
  expect(state.asked).toBe(2);
});

test("central being away, the old one is used to its end, asking every 10 s", async () => {
  const { source, state } = harness();
  const first = await source.get();
  state.fault = "CENTRAL_UNREACHABLE";
  state.nowMs = 600_000;
  expect(await source.get()).toBe(first);
  expect(await source.get()).toBe(first);
  expect(state.asked).toBe(2);
  state.nowMs = 610_000;
  expect(await source.get()).toBe(first);
  expect(state.asked).toBe(3);
  state.nowMs = 900_000;
  await expect(source.get()).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
});

test("one that is discarded while another is asked for is not used on", async () => {
  const { source, state } = harness();
  const first = await source.get();
  state.fault = "CENTRAL_UNREACHABLE";
  state.nowMs = 600_000;
  const asking = source.get();
  source.discard(first);
  await expect(asking).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
});

test("a refused secret is told at the first renewal", async () => {
  const { source, state } = harness();
  await source.get();
  state.fault = "WRONG_SECRET16";
  state.nowMs = 600_000;
  await expect(source.get()).rejects.toMatchObject({ code: "WRONG_SECRET16" });
});

test("a failed question is not remembered", async () => {
  const { source, state } = harness();
  state.fault = "CENTRAL_UNREACHABLE";
  await expect(source.get()).rejects.toThrow();
  state.fault = undefined;
  expect(await source.get()).toBeDefined();
});

test("a discarded one is not given again; discarding an older one harms no newer", async () => {
  const { source } = harness();
  const first = await source.get();
  source.discard(first);
  const second = await source.get();
  expect(second).not.toBe(first);
  source.discard(first);
  expect(await source.get()).toBe(second);
});
