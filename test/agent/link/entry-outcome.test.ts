// One entry through its applier: what is tried again and how often, and what the receipt says in the end.

import { expect, test } from "vitest";
import { settleEntry, type EntryOutcome } from "../../../src/agent/link/entry-outcome.ts";
import { AccelError, type FaultCode } from "../../../src/core/faults.ts";
import type { KnownEntry } from "../../../src/wire/journal.ts";
import { appliersOf } from "../../support/link-rig.ts";

const entry = {
  seq: 3,
  at: "",
  kind: "viewset.activated",
  body: { domain: "a.example", viewset_id: 1, viewset_name: "v", manifest: "0".repeat(64) },
} as KnownEntry;

async function settle(
  answers: readonly (FaultCode | EntryOutcome)[],
  { supersedeAt = Infinity, stopAt = Infinity } = {},
) {
  const stop = new AbortController();
  const superseded = new AbortController();
  let calls = 0;
  const settled = await settleEntry(entry, {
    appliers: appliersOf(async () => {
      const answer = answers[Math.min(calls++, answers.length - 1)];
      if (calls >= supersedeAt) superseded.abort(9);
      if (calls >= stopAt) stop.abort();
      if (typeof answer !== "string" && answer !== undefined) return answer;
      throw new AccelError(answer ?? "INTERNAL", `no: ${answer}`);
    }),
    signals: { stop: stop.signal, superseded: superseded.signal },
    backoff: { firstMs: 1, mostMs: 2 },
    random: () => 0.5,
    onWait: () => undefined,
    onLate: () => undefined,
  });
  return { settled, calls };
}

const applied: EntryOutcome = { phase: "applied", detail: { manifest: "m" } };

test("an outcome becomes the receipt", async () => {
  const { settled } = await settle([applied]);
  expect(settled?.receipt).toMatchObject({ seq: 3, phase: "applied", detail: { manifest: "m" } });
});

test.each<FaultCode>([
  "CENTRAL_UNREACHABLE",
  "CENTRAL_REFUSED",
  "WRONG_SECRET16",
  "UNKNOWN_NAME16",
  "CLOCK_SKEWED",
  "TOKEN_EXPIRED",
])("while %s it is tried again, never receipted as failed", async (code) => {
  const { settled, calls } = await settle([...Array<FaultCode>(20).fill(code), applied]);
  expect(calls).toBe(21);
  expect(settled?.receipt.phase).toBe("applied");
});

test("a fault that a repetition may heal is tried five times", async () => {
  const { settled, calls } = await settle(["BLOB_MISMATCH"]);
  expect(calls).toBe(5);
  expect(settled?.receipt).toMatchObject({
    phase: "failed",
    detail: { code: "BLOB_MISMATCH", reason: "no: BLOB_MISMATCH" },
  });
});

test("another fault is told at once", async () => {
  const { settled, calls } = await settle(["IMPORT_IMPOSSIBLE"]);
  expect(calls).toBe(1);
  expect(settled?.receipt).toMatchObject({
    phase: "failed",
    detail: { code: "IMPORT_IMPOSSIBLE" },
  });
});

test("superseded while it waits: failed, naming its successor", async () => {
  const { settled, calls } = await settle(["CENTRAL_UNREACHABLE"], { supersedeAt: 4 });
  expect(calls).toBe(4);
  expect(settled?.receipt).toMatchObject({
    phase: "failed",
    detail: { code: "CENTRAL_UNREACHABLE", superseded_by: 9 },
  });
});

test("stopped: no outcome", async () => {
  const { settled } = await settle(["CENTRAL_UNREACHABLE"], { stopAt: 2 });
  expect(settled).toBeUndefined();
});

test("an outcome that came although superseded or stopped counts: its effect is durable", async () => {
  const { settled } = await settle([applied], { supersedeAt: 1, stopAt: 1 });
  expect(settled?.receipt.phase).toBe("applied");
});

test("the second part is a receipt of its own; when it fails there is none", async () => {
  const gone = { phase: "gone" as const, detail: { removed: 2 } };
  const { settled } = await settle([{ ...applied, later: Promise.resolve(gone) }]);
  expect(await settled?.later).toMatchObject({ seq: 3, phase: "gone", detail: { removed: 2 } });
  const broken = await settle([{ ...applied, later: Promise.reject(new Error("disk")) }]);
  expect(await broken.settled?.later).toBeUndefined();
});

test("a long reason is cut", async () => {
  const stop = new AbortController();
  const settled = await settleEntry(entry, {
    appliers: appliersOf(async () => {
      throw new AccelError("VIEWSET_INVALID", "x".repeat(100_000));
    }),
    signals: { stop: stop.signal, superseded: stop.signal },
    backoff: { firstMs: 1, mostMs: 1 },
    random: () => 0,
    onWait: () => undefined,
    onLate: () => undefined,
  });
  expect(JSON.stringify(settled?.receipt).length).toBeLessThan(2_000);
});
