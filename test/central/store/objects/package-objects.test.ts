// Packages in a bucket: a row has its object, an upload that is refused or cut off leaves none, and what cannot be had is an error with words.

import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { CustomerStore } from "../../../../src/central/store/engine/customer-store.ts";
import type {
  KeptPackage,
  StagedPackage,
} from "../../../../src/central/store/objects/object-store.ts";
import { addPackage } from "../../../../src/central/store/packages/packages.ts";
import { sealer } from "../../../support/agent-side.ts";
import {
  deleteAfterMs,
  digestOf,
  piecesOf,
  startObjectsRig,
  type ObjectsRig,
} from "../../../support/blob-objects-rig.ts";
import { passing } from "../../../support/s3-faults.ts";

function taken(staged: StagedPackage | "too-large"): StagedPackage {
  if (staged === "too-large") throw new Error("too large");
  return staged;
}

/** Writes the row in one transaction with the release, as the API does. */
async function addRow(
  { store, clock }: ObjectsRig,
  staged: StagedPackage,
  kept: KeptPackage,
): Promise<void> {
  const { size, sha256 } = staged;
  const file = "x-1.0-py3-none-any.whl";
  const given = { version: "1.0", version_key: "1", file, size, sha256, uploaded_by_user_id: 1 };
  const customers = new CustomerStore({ store, sealer, now: clock.now, randomBytes });
  await customers.transact(async (work) => {
    await addPackage(work, { ...given, ...kept });
    await staged.release(work.tx);
  });
}

test("a package that a row names is there; one that none names goes", async () => {
  await using rig = await startObjectsRig();
  const { packages, collect } = await rig.central();
  const kept = await (async () => {
    await using staged = taken(await packages.stage(piecesOf("whe", "el"), 5));
    const made = await staged.keep();
    await addRow(rig, staged, made);
    return made;
  })();
  expect(kept).toEqual({ stored_as: kept.object_key, object_key: rig.keys()[0] });
  expect(kept.object_key).toMatch(new RegExp(`^${digestOf("wheel")}/`));
  {
    await using staged = taken(await packages.stage(piecesOf("refused"), 10));
    await staged.keep();
  }
  expect(rig.keys()).toHaveLength(2);
  rig.clock.ms += 2 * deleteAfterMs;
  await collect();
  expect(rig.keys()).toEqual([kept.object_key]);
  expect(await rig.loose()).toEqual([]);
  expect(String(await buffer(await packages.open({ ...kept, size: 5 })))).toBe("wheel");
  expect(await packages.stage(piecesOf("whe", "el"), 4)).toBe("too-large");
});

test("a bucket that fails leaves no row; an object that is missing is an error", async () => {
  await using rig = await startObjectsRig();
  const { packages, collect } = await rig.central();
  const unreachable = expect.objectContaining({ code: "OBJECTS_UNREACHABLE" });
  rig.faults.choose = () => ({ kind: "status", status: 500, code: "InternalError" });
  {
    await using staged = taken(await packages.stage(piecesOf("wheel"), 5));
    await expect(staged.keep()).rejects.toEqual(unreachable);
  }
  rig.faults.choose = () => passing;
  await collect();
  expect([rig.keys(), await rig.loose()]).toEqual([[], []]);
  const lost = { stored_as: "a", object_key: "a/b", size: 5 };
  await expect(packages.open(lost)).rejects.toEqual(unreachable);
  await expect(packages.open({ ...lost, object_key: null })).rejects.toEqual(unreachable);
});

test("a transaction that comes after the delay writes no row: the object may be gone", async () => {
  await using rig = await startObjectsRig();
  const { packages, collect } = await rig.central();
  await using staged = taken(await packages.stage(piecesOf("wheel"), 5));
  const kept = await staged.keep();
  rig.clock.ms += deleteAfterMs + 1;
  await collect();
  await expect(addRow(rig, staged, kept)).rejects.toMatchObject({ code: "OBJECTS_UNREACHABLE" });
  expect(await rig.store.selectFrom("packages").selectAll().execute()).toEqual([]);
  expect([rig.keys(), await rig.loose()]).toEqual([[], []]);
});
