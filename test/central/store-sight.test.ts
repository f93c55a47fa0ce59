// The warning of a store that cannot be used: from either way of looking, until both work.

import { expect, test } from "vitest";
import { Health } from "../../src/base/health.ts";
import { AccelError } from "../../src/core/faults.ts";
import { silentLog } from "../../src/base/log.ts";
import { StoreSight } from "../../src/central/store-sight.ts";

const former = new AccelError("STORE_UNREACHABLE", "db is a former primary", {
  hint: "Shut it off.",
});

function scene() {
  const health = new Health(() => new Date("2030-01-01T00:00:00Z"));
  const sight = new StoreSight({ health, log: silentLog(), where: "db" });
  const told = () => health.told().map(({ code, text }) => ({ code, text }));
  return { sight, told };
}

test("the pool is refused while the connection that holds the store is well", () => {
  const { sight, told } = scene();
  sight.poolAsked(former);
  expect(told()).toEqual([{ code: "store_unreachable", text: "db is a former primary" }]);
  sight.holdBack();
  expect(told()).toHaveLength(1);
  sight.poolAsked(undefined);
  expect(told()).toEqual([]);
});

test("the warning stays until both work, and says once that the store does not answer", () => {
  const { sight, told } = scene();
  sight.holdLost(new Error("read ECONNRESET"));
  expect(told()).toMatchObject([{ text: "the store db does not answer: read ECONNRESET" }]);
  const gone = "the store db does not answer: connect ECONNREFUSED";
  sight.holdLost(new AccelError("STORE_UNREACHABLE", gone));
  expect(told()).toMatchObject([{ text: gone }]);
  sight.poolAsked(former);
  sight.holdBack();
  expect(told()).toHaveLength(1);
  sight.poolAsked(undefined);
  expect(told()).toEqual([]);
});

test("an overload of the pool is no absence", () => {
  const { sight, told } = scene();
  sight.poolAsked(new AccelError("BUSY", "the store db is overloaded"));
  expect(told()).toEqual([]);
});
