// One entry through its applier: what is tried again and how often, and what the receipt says in the end.

import { expect, test } from "vitest";
import {
  refusedReceipt,
  settleEntry,
  type Settled,
  type EntryOutcome,
} from "../../../src/agent/link/entry-outcome.ts";
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
  answers: readonly (FaultCode | EntryOutcome | Error)[],
  { of = entry, supersedeAt = Infinity, supersedeAtWait = Infinity, stopAt = Infinity } = {},
) {
  const stop = new AbortController();
  const superseded = new AbortController();
  let calls = 0;
  let waits = 0;
  const settled = await settleEntry(of, {
    appliers: appliersOf(async () => {
      const answer = answers[Math.min(calls++, answers.length - 1)];
      if (calls >= supersedeAt) superseded.abort(9);
      if (calls >= stopAt) stop.abort();
      if (answer instanceof Error) throw answer;
      if (typeof answer !== "string" && answer !== undefined) return answer;
      throw new AccelError(answer ?? "INTERNAL", `no: ${answer}`);
    }),
    signals: { stop: stop.signal, superseded: superseded.signal },
    backoff: { firstMs: 1, mostMs: 2 },
    random: () => 0.5,
    onWait: () => {
      if (++waits >= supersedeAtWait) superseded.abort(9);
    },
    onLate: () => undefined,
  });
  return { settled, calls };
}

/** Undefined: it was stopped before. */
const reached = (settled: Settled | "stopped"): Settled | undefined =>
  settled === "stopped" ? undefined : settled;

const applied: EntryOutcome = { phase: "applied", detail: { manifest: "m" } };

test("an outcome becomes the receipt", async () => {
  const { settled } = await settle([applied]);
  expect(reached(settled)?.receipt).toMatchObject({
    seq: 3,
    phase: "applied",
    detail: { manifest: "m" },
  });
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
  expect(reached(settled)?.receipt.phase).toBe("applied");
});

test.each(["ENOSPC", "EDQUOT", "EROFS", "SQLITE_FULL", "EMFILE"])(
  "while this host has no room (%s) it is tried again, whoever wraps it; a clear and an import are told",
  async (code) => {
    const bare = Object.assign(new Error(`${code}: none is left`), { code });
    const wrapped = new AccelError("DISK_FAILED", "a blob cannot be written", { cause: bare });
    const { settled, calls } = await settle([
      ...Array.from({ length: 5 }, () => bare),
      ...Array.from({ length: 5 }, () => wrapped),
      applied,
    ]);
    expect(calls).toBe(11);
    expect(reached(settled)?.receipt.phase).toBe("applied");
    for (const kind of ["cache.clear", "viewset.import"] as const) {
      const told = await settle([bare], { of: { ...entry, kind } as KnownEntry });
      expect(reached(told.settled)?.receipt).toMatchObject({
        phase: "failed",
        detail: { code: code === "EMFILE" ? "DESCRIPTORS_USED_UP" : "DISK_FAILED" },
      });
      expect(told.calls).toBe(1);
    }
  },
);

test("a fault that a repetition may heal is tried five times", async () => {
  const { settled, calls } = await settle(["BLOB_MISMATCH"]);
  expect(calls).toBe(5);
  expect(reached(settled)?.receipt).toMatchObject({
    phase: "failed",
    detail: { code: "BLOB_MISMATCH", reason: "no: BLOB_MISMATCH" },
  });
});

test("another fault is told at once", async () => {
  const { settled, calls } = await settle(["IMPORT_IMPOSSIBLE"]);
  expect(calls).toBe(1);
  expect(reached(settled)?.receipt).toMatchObject({
    phase: "failed",
    detail: { code: "IMPORT_IMPOSSIBLE" },
  });
});

test("superseded while it waits: failed, naming its successor", async () => {
  const { settled, calls } = await settle(["CENTRAL_UNREACHABLE"], { supersedeAtWait: 4 });
  expect(calls).toBe(4);
  expect(reached(settled)?.receipt).toMatchObject({
    phase: "failed",
    detail: { code: "CENTRAL_UNREACHABLE", superseded_by: 9 },
  });
});

/** An applier that goes on until it is told to stop; `seen` is what it was told. */
async function settleEndless(kind: "viewset.activated" | "viewset.import" | "bots.changed") {
  const [stop, superseded] = [new AbortController(), new AbortController()];
  const seen: unknown[] = [];
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const settling = settleEntry({ ...entry, kind } as KnownEntry, {
    appliers: appliersOf(async (_, signal) => {
      begun.resolve();
      signal.addEventListener("abort", () => {
        seen.push(signal.reason);
        // As a broken connection looks like.
        end.reject(new AccelError("CENTRAL_UNREACHABLE", "broke off"));
      });
      await end.promise;
      return applied;
    }),
    signals: { stop: stop.signal, superseded: superseded.signal },
    backoff: { firstMs: 1, mostMs: 2 },
    random: () => 0.5,
    onWait: () => seen.push("waits"),
    onLate: () => undefined,
  });
  await begun.promise;
  return { settling, stop, superseded, seen, end };
}

test("an activation under way ends for its successor, whatever it throws then: failed, naming it", async () => {
  const { settling, superseded, seen } = await settleEndless("viewset.activated");
  superseded.abort(9);
  expect(reached(await settling)?.receipt).toMatchObject({
    seq: 3,
    phase: "failed",
    detail: {
      reason: "entry 9 took its place before it was in force",
      code: "SUPERSEDED",
      superseded_by: 9,
    },
  });
  expect(seen).toEqual([9]);
});

test("superseded before it begins: it is told at once", async () => {
  const superseded = AbortSignal.abort(9);
  const settled = await settleEntry(entry, {
    appliers: appliersOf(async (_, signal) => {
      signal.throwIfAborted();
      return applied;
    }),
    signals: { stop: new AbortController().signal, superseded },
    backoff: { firstMs: 1, mostMs: 2 },
    random: () => 0.5,
    onWait: () => undefined,
    onLate: () => undefined,
  });
  expect(reached(settled)?.receipt).toMatchObject({
    phase: "failed",
    detail: { superseded_by: 9 },
  });
});

test.each(["viewset.import", "bots.changed"] as const)(
  "%s goes on though a later one came: what comes later may build on it",
  async (kind) => {
    const { settling, superseded, seen, end } = await settleEndless(kind);
    superseded.abort(9);
    end.resolve();
    expect(reached(await settling)?.receipt.phase).toBe("applied");
    expect(seen).toEqual([]);
  },
);

test("stopped while it is superseded too: no outcome", async () => {
  const { settling, stop, superseded } = await settleEndless("viewset.activated");
  superseded.abort(9);
  stop.abort();
  expect(await settling).toBe("stopped");
});

test("stopped: no outcome", async () => {
  const { settled } = await settle(["CENTRAL_UNREACHABLE"], { stopAt: 2 });
  expect(settled).toBe("stopped");
});

test("an outcome that came although superseded or stopped counts: its effect is durable", async () => {
  const { settled } = await settle([applied], { supersedeAt: 1, stopAt: 1 });
  expect(reached(settled)?.receipt.phase).toBe("applied");
});

test("the second part is a receipt of its own; when it fails there is none", async () => {
  const gone = { phase: "gone" as const, detail: { removed: 2 } };
  const { settled } = await settle([{ ...applied, later: Promise.resolve(gone) }]);
  expect(await reached(settled)?.later).toMatchObject({
    seq: 3,
    phase: "gone",
    detail: { removed: 2 },
  });
  const broken = await settle([{ ...applied, later: Promise.reject(new Error("disk")) }]);
  expect(await reached(broken.settled)?.later).toBeUndefined();
});

test("an entry that was never tried is refused: with the reason, and without time", () => {
  const receipt = { seq: 7, phase: "refused", detail: { reason: "why" }, took_ms: 0 };
  expect(refusedReceipt(7, "why")).toEqual(receipt);
  expect(JSON.stringify(refusedReceipt(7, "x".repeat(100_000))).length).toBeLessThan(2_000);
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
  expect(JSON.stringify(reached(settled)?.receipt).length).toBeLessThan(2_000);
});
