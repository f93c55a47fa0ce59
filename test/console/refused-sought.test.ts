// By what somebody seeks who asks why a visitor was refused.

import { expect, test } from "vitest";
import { refusedSought } from "../../src/console/refused-sought.ts";

test.each([
  ["192.0.2.7", { address: "192.0.2.7", verdict: "refused" }],
  [" 192.0.2.0/24 ", { address: "192.0.2.0/24", verdict: "refused" }],
  ["2001:db8::7", { address: "2001:db8::7", verdict: "refused" }],
  [
    "abcd:ef01:2345:6789:abcd:ef01:2345:6789",
    { address: "abcd:ef01:2345:6789:abcd:ef01:2345:6789", verdict: "refused" },
  ],
  ["1795000000250000.2026-11-18.812", { id: "1795000000250000.2026-11-18.812" }],
  ["whatever", { id: "whatever" }],
])("%s is looked for in the logs", (text, query) => {
  expect(refusedSought(text)).toEqual({ kind: "logs", query });
});

test.each([
  "6b0c1f0e9d2a4c57",
  " 6B0C1F0E9D2A4C57",
  "1234567890123456",
  "X-Accel-Decision: 6b0c1f0e9d2a4c57",
])("%s is the id of a decision, which no record has", (text) => {
  expect(refusedSought(text)).toEqual({
    kind: "decision",
    id: text.trim().toLowerCase().replace("x-accel-decision: ", ""),
  });
});
