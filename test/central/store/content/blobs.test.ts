// How long a blob counts as needed: from when it was stored, or was last asked for by somebody who may be about to name it.

import { join } from "node:path";
import { expect, test } from "vitest";
import { openBlobs } from "../../../../src/central/store/content/blobs.ts";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { type Sha256 } from "../../../../src/core/ids.ts";

const hourMs = 3_600_000;

async function open() {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir()).path;
  const clock = { ms: Date.parse("2031-05-06T07:08:09.010Z") };
  const now = (): Date => new Date(clock.ms);
  const store = stack.use(await openStore(join(dir, "central.db"), now));
  const blobs = await openBlobs(join(dir, "blobs"), store, now);
  const held = stack.move();
  return {
    blobs,
    clock,
    /** When each counts as stored, by the order of their digests' making. */
    created: async (sha256: Sha256): Promise<number> => {
      const row = store.selectFrom("blobs").select("when_created").where("sha256", "=", sha256);
      return Date.parse((await row.executeTakeFirstOrThrow()).when_created);
    },
    [Symbol.asyncDispose]: async () => held.disposeAsync(),
  };
}

test("asked for within the hour nothing is written; later it counts as stored now, and no other does", async () => {
  await using rig = await open();
  const { blobs, clock } = rig;
  const began = clock.ms;
  const asked = await blobs.put(Buffer.from("asked for"));
  const other = await blobs.put(Buffer.from("not asked for"));
  clock.ms = began + hourMs;
  expect(await blobs.missing([asked])).toEqual([]);
  expect(await rig.created(asked)).toBe(began);
  clock.ms = began + hourMs + 1;
  expect(await blobs.missing([asked])).toEqual([]);
  expect([await rig.created(asked), await rig.created(other)]).toEqual([clock.ms, began]);
});

test("put once more it counts as stored now, to the hour", async () => {
  await using rig = await open();
  const { blobs, clock } = rig;
  const began = clock.ms;
  const sha256 = await blobs.put(Buffer.from("text"));
  clock.ms += hourMs / 2;
  await blobs.put(Buffer.from("text"));
  expect(await rig.created(sha256)).toBe(began);
  clock.ms += hourMs;
  await blobs.put(Buffer.from("text"));
  expect(await rig.created(sha256)).toBe(clock.ms);
});
