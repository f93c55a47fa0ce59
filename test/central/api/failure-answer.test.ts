// What a customer reads where something behind central failed.

import { join } from "node:path";
import { expect, test } from "vitest";
import { AccelError, type FaultCode } from "../../../src/core/faults.ts";
import { failureAnswer } from "../../../src/central/api/http/failure-answer.ts";
import { openStore, storeEpoch } from "../../../src/central/store/engine/database.ts";
import { isStoreAway, postgresFault } from "../../../src/central/store/engine/postgres-faults.ts";
import { tempDir } from "../../support/temp-dir.ts";

test.each<readonly [FaultCode, string, boolean, boolean]>([
  ["OBJECTS_UNREACHABLE", "GET", false, false],
  ["OBJECTS_UNREACHABLE", "HEAD", false, false],
  ["OBJECTS_UNREACHABLE", "PUT", true, true],
  ["STORE_UNREACHABLE", "GET", false, false],
  ["STORE_UNREACHABLE", "POST", true, false],
  ["BUSY", "DELETE", true, false],
])("%s of a %s: a key for orders alone", (code, method, hasKey, isUnchanged) => {
  const answer = failureAnswer(new AccelError(code, "away"), "7", method);
  const said = JSON.stringify(answer);
  expect([answer.status, said.includes("Idempotency-Key"), said.includes("nothing was")]).toEqual([
    503,
    hasKey,
    isUnchanged,
  ]);
});

test("who waits for another change in vain is told that, and not that the store is away", () => {
  const lock = Object.assign(new Error("canceling statement due to lock timeout"), {
    code: "55P03",
  });
  const answer = failureAnswer(postgresFault(lock, "db"), "7", "POST");
  expect(answer.status).toBe(503);
  expect(JSON.stringify(answer)).toContain("another change holds what is asked for");
});

test("a store that is closed is one that cannot be had, for customers and for agents", () => {
  const closed = new Error("driver has already been destroyed");
  expect(isStoreAway(closed)).toBe(true);
  const answer = failureAnswer(closed, "7", "POST");
  expect([answer.status, answer.headers]).toEqual([503, { "retry-after": "5" }]);
  expect(failureAnswer(new Error("something else"), "7", "POST").status).toBe(500);
});

test("the text by which a closed store is known is that of the store", async () => {
  using dir = tempDir();
  const store = await openStore(join(dir.path, "central.db"), () => new Date());
  await storeEpoch(store);
  await store[Symbol.asyncDispose]();
  const error: unknown = await storeEpoch(store).catch((thrown: unknown) => thrown);
  expect(failureAnswer(error, "7", "GET").status).toBe(503);
});
