// What comes late: the `gone` of a clear belongs to its entry and its history alone, and no entry but a state is given up for a later one.

import { expect, test } from "vitest";
import type { EntryOutcome } from "../../../src/agent/link/entry-outcome.ts";
import { AccelError } from "../../../src/core/faults.ts";
import { enders, journalKinds, type KnownEntry } from "../../../src/wire/journal.ts";
import { FakeCentral } from "../../support/fake-central.ts";
import { clear, Effects, startRig, type Rig } from "../../support/link-rig.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

/** Clears are applied at once; each is gone when the test says so. */
class Clears {
  readonly #gone = new Map<string, PromiseWithResolvers<{ phase: "gone"; detail: object }>>();

  async apply({ body }: KnownEntry): Promise<EntryOutcome> {
    const gate = this.#gate(body);
    return { phase: "applied", detail: {}, later: gate.promise as never };
  }

  goneOf(id: string): void {
    this.#of(id).resolve({ phase: "gone", detail: { of: id } });
  }

  #gate(body: object): PromiseWithResolvers<{ phase: "gone"; detail: object }> {
    return this.#of("clear_id" in body ? String(body.clear_id) : "");
  }

  #of(id: string): PromiseWithResolvers<{ phase: "gone"; detail: object }> {
    const gate = this.#gone.get(id) ?? Promise.withResolvers();
    this.#gone.set(id, gate);
    return gate;
  }
}

const told = (central: FakeCentral): readonly (readonly [number, string, unknown])[] =>
  central.receipts.map(({ seq, phase, detail }) => [seq, phase, detail["of"]]);
const connected = async (rig: Rig): Promise<unknown> =>
  until("connected", () => rig.link.status().state === "connected");
const appliedAt = async (rig: Rig, seq: number): Promise<unknown> =>
  until(`applied ${seq}`, () => {
    const { applied_seq, receipts_unacknowledged } = rig.link.status();
    return applied_seq === seq && receipts_unacknowledged === 0;
  });

test("a `gone` of a history that is over is told for no entry of the next one, and nothing of it is finished", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  const clears = new Clears();
  await using rig = startRig({
    central,
    dir: dir.path,
    effects: new Effects(),
    appliers: { "cache.clear": async (entry) => clears.apply(entry) },
  });
  await connected(rig);
  central.append("cache.clear", clear("old"));
  await appliedAt(rig, 1);
  // Another store: its first entry has the number of the old one.
  central.journal.renew();
  central.dropChannels();
  await until("another history", () => rig.db.ledger.position.epoch === central.journal.epoch);
  central.append("cache.clear", clear("new"));
  await appliedAt(rig, 1);
  await until("its second part is awaited", () => rig.db.ledger.unfinished().length === 1);
  clears.goneOf("old");
  // Whatever came of that has been written down when another entry is.
  central.append("cache.clear", clear("behind"));
  await appliedAt(rig, 2);
  expect(rig.db.ledger.unfinished().map(({ seq }) => seq)).toEqual([1, 2]);
  clears.goneOf("new");
  await until("it is gone", () => told(central).some(([, , of]) => of === "new"));
  expect(told(central).filter(([, phase]) => phase === "gone")).toEqual([[1, "gone", "new"]]);
  expect(rig.db.ledger.unfinished().map(({ seq }) => seq)).toEqual([2]);
});

test("a clear that is tried again is not given up for the next one", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  let failing = true;
  const done: string[] = [];
  await using rig = startRig({
    central,
    dir: dir.path,
    effects: new Effects(),
    appliers: {
      "cache.clear": async ({ body }) => {
        const id = "clear_id" in body ? body.clear_id : "";
        if (failing) throw new AccelError("CENTRAL_UNREACHABLE", "not yet");
        done.push(id);
        return { phase: "applied", detail: {} };
      },
    },
  });
  await connected(rig);
  for (const id of ["one", "two"]) central.append("cache.clear", clear(id));
  await until("both are there", () => rig.link.status().head_seq === 2);
  await until("the first waits", () => rig.codes().includes("entry_waiting"));
  failing = false;
  await appliedAt(rig, 2);
  expect(done).toEqual(["one", "two"]);
  expect(central.receipts.map(({ seq, phase }) => [seq, phase])).toEqual([
    [1, "applied"],
    [2, "applied"],
  ]);
});

test("a clear that failed leaves the newest applied one as it is", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  await using rig = startRig({
    central,
    dir: dir.path,
    effects: new Effects(),
    appliers: {
      "cache.clear": async ({ seq }) => {
        if (seq === 2) throw new AccelError("PATTERN_INVALID", "no");
        return { phase: "applied", detail: {} };
      },
    },
  });
  await connected(rig);
  for (const id of ["one", "two"]) central.append("cache.clear", clear(id));
  await appliedAt(rig, 2);
  expect(central.receipts.map(({ phase }) => phase)).toEqual(["applied", "failed"]);
  expect(rig.db.ledger.lastClearSeq).toBe(1);
});

test("a later entry takes the place of an earlier one of every kind but clears, imports and what is withdrawn", () => {
  const others = Object.entries(journalKinds).filter(([, { isState }]) => !isState);
  expect(others.map(([kind]) => kind).toSorted()).toEqual([
    "cache.clear",
    "viewset.import",
    "viewset.withdrawn",
  ]);
});

test("what is prepared of a domain gives way to each later word on its version", () => {
  const later = ["viewset.prepare", "viewset.activated", "viewset.withdrawn"];
  expect(enders("viewset.prepare").toSorted()).toEqual(later.toSorted());
  expect(enders("viewset.activated")).toEqual(["viewset.activated"]);
  expect(enders("cache.clear")).toEqual([]);
});
