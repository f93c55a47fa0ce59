// What blobs promise wherever they lie: in the state directory, and in a bucket.

import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { openBlobs } from "../../../../src/central/store/content/blobs.ts";
import type { Blobs } from "../../../../src/central/store/objects/object-store.ts";
import {
  digestOf,
  piecesOf,
  startObjectsRig,
  type ObjectsRig,
} from "../../../support/blob-objects-rig.ts";

const places: readonly (readonly [string, (rig: ObjectsRig) => Promise<Blobs>])[] = [
  [
    "in the state directory",
    async ({ path, store, clock }) => openBlobs(join(path, "blobs"), store, clock.now),
  ],
  ["in a bucket", async (rig) => (await rig.central()).blobs],
];

describe.each(places)("%s", (_, open) => {
  test("what was stored is there, by each way of storing it", async () => {
    await using rig = await startObjectsRig();
    const blobs = await open(rig);
    expect(await blobs.put(Buffer.from("put"))).toBe(digestOf("put"));
    expect(await blobs.write(piecesOf("wri", "tten"))).toBe(digestOf("written"));
    expect(await blobs.receive(digestOf("received"), piecesOf("received"), 8)).toBe("stored");
    for (const text of ["put", "written", "received"]) {
      expect(await blobs.sizeOf(digestOf(text))).toBe(text.length);
      expect(Buffer.from((await blobs.read(digestOf(text))) ?? []).toString()).toBe(text);
      expect(String(await buffer(await blobs.open(digestOf(text), 1, 2)))).toBe(text.slice(1, 3));
      expect(String(await buffer(await blobs.open(digestOf(text), 1, Infinity)))).toBe(
        text.slice(1),
      );
    }
    const asked = [digestOf("none"), digestOf("put"), digestOf("none")];
    expect(await blobs.missing(asked)).toEqual([digestOf("none")]);
    expect(await blobs.sizes(asked)).toEqual(new Map([[digestOf("put"), 3]]));
    expect(await blobs.sizeOf(digestOf("none"))).toBeUndefined();
    expect(await blobs.read(digestOf("none"))).toBeUndefined();
  });

  test("what is not what was announced is not stored", async () => {
    await using rig = await startObjectsRig();
    const blobs = await open(rig);
    expect(await blobs.receive(digestOf("a"), piecesOf("b"), 9)).toBe("mismatch");
    expect(await blobs.receive(digestOf("ab"), piecesOf("a", "b"), 1)).toBe("too large");
    expect(await blobs.receive(digestOf("a"), broken(), 9)).toBe("aborted");
    await expect(blobs.write(broken())).rejects.toThrow("gone");
    expect(await rig.rows()).toEqual([]);
  });

  test("what was removed is missing, and can be stored again", async () => {
    await using rig = await startObjectsRig();
    const blobs = await open(rig);
    for (let round = 0; round < 3; round++) {
      await blobs.put(Buffer.from("text"));
      expect(await blobs.missing([digestOf("text")])).toEqual([]);
      await blobs.remove(digestOf("text"));
      expect(await blobs.missing([digestOf("text")])).toEqual([digestOf("text")]);
    }
  });

  test("all that is kept is what a collection sees, and nothing of it is young", async () => {
    await using rig = await startObjectsRig();
    const blobs = await open(rig);
    const stored = await Promise.all(
      Array.from({ length: 30 }, async (_one, no) => blobs.put(Buffer.from(`${no}`))),
    );
    const kept = (await Array.fromAsync(blobs.kept())).flat();
    expect(kept.toSorted()).toEqual(stored.toSorted());
    const seen = { named: [], unnamed: kept };
    expect(await blobs.collect(seen, rig.clock.now())).toMatchObject({ removed: 0, stray: 0 });
    expect(await blobs.missing(kept)).toEqual([]);
  });
});

async function* broken(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("a");
  throw new Error("gone");
}
