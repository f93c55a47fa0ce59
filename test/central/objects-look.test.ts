// The look behind a start for the newest that the store names: what is told while it is not there, and that it is asked again until it is.

import { join } from "node:path";
import { expect, test } from "vitest";
import { Health } from "../../src/base/health.ts";
import { silentLog } from "../../src/base/log.ts";
import { lookForNamed, refuseMissing } from "../../src/central/objects-look.ts";
import { openBlobs } from "../../src/central/store/content/blobs.ts";
import { openStore } from "../../src/central/store/engine/database.ts";
import type { NamedObject } from "../../src/central/store/objects/named-objects.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const now = (): Date => new Date("2030-01-15T12:00:00.000Z");

async function setUp() {
  await using stack = new AsyncDisposableStack();
  const { path } = stack.use(tempDir());
  const store = stack.use(await openStore(join(path, "central.db"), now));
  const blobs = await openBlobs(join(path, "blobs"), store, now);
  const owned = stack.move();
  const asked: NamedObject[] = [];
  const place = { answer: "missing" as "there" | "missing" | "away" };
  const look = {
    store,
    isInBucket: false,
    where: "the place",
    isThere: async (named: NamedObject) => {
      asked.push(named);
      if (place.answer === "away") throw new Error("it does not answer");
      return place.answer === "there";
    },
  };
  return {
    blobs,
    asked,
    place,
    look,
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

test("it warns of what is not there, by name, and asks again until it is there, also where the place did not answer at first", async () => {
  await using rig = await setUp();
  const sha256 = await rig.blobs.put(Buffer.from("named"));
  const named = { kind: "blob", place: `blobs/${sha256.slice(0, 2)}/${sha256}` };
  const health = new Health(now);
  const told = (): unknown => health.list().map(({ code, text }) => [code, text]);
  rig.place.answer = "away";
  await using _ = lookForNamed(rig.look, { health, log: silentLog(), lookMs: 5 });
  await until("it is asked again", () => rig.asked.length > 2);
  expect(told()).toEqual([]);
  rig.place.answer = "missing";
  await until("it warns", () => health.list().length > 0);
  const text = `the place lacks ${named.place}, the newest blob that the store names: it is another place than the store's, or it lost that`;
  expect(told()).toEqual([["objects_misplaced", text]]);
  rig.place.answer = "there";
  await until("it is over", () => health.list().length === 0);
  expect(rig.asked).toEqual(rig.asked.map(() => named));
});

test("a store that names nothing lacks nothing, and what goes by right between two looks is not missed", async () => {
  await using rig = await setUp();
  await refuseMissing(rig.look);
  expect(rig.asked).toEqual([]);
  const sha256 = await rig.blobs.put(Buffer.from("goes"));
  await refuseMissing({
    ...rig.look,
    isThere: async () => {
      await rig.blobs.remove(sha256);
      return false;
    },
  });
  await rig.blobs.put(Buffer.from("stays"));
  await expect(refuseMissing(rig.look)).rejects.toMatchObject({ code: "OBJECTS_MISPLACED" });
});
