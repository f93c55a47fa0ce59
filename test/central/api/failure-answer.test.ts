// What a customer reads where something behind central failed.

import { expect, test } from "vitest";
import { AccelError, type FaultCode } from "../../../src/core/faults.ts";
import { failureAnswer } from "../../../src/central/api/http/failure-answer.ts";

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
