// Blobs in a bucket: no row without its object, whatever fails or is killed in between; what nobody names goes after its delay, and nothing else does.

import { readdirSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import fc from "fast-check";
import { expect, test } from "vitest";
import { keptMs } from "../../../../src/central/store/content/blob-collection.ts";
import { holdBlobs } from "../../../../src/central/store/content/blob-rows.ts";
import { canonicalJson } from "../../../../src/core/journal/canonical-json.ts";
import type { Sha256 } from "../../../../src/core/ids.ts";
import { seedSite } from "../../../support/agent-side.ts";
import {
  dayMs,
  deleteAfterMs,
  digestOf,
  findingsOf,
  nothingFound,
  piecesOf,
  startObjectsRig,
  type ObjectsRig,
} from "../../../support/blob-objects-rig.ts";
import { passing } from "../../../support/s3-faults.ts";

const hourMs = 3_600_000;
const keyOf = (text: string): RegExp => new RegExp(`^${digestOf(text)}/[0-9a-f]{16}$`);
const unreachable = expect.objectContaining({ code: "OBJECTS_UNREACHABLE" });

/** A version of the domain whose manifest names these texts; nothing of it is stored but the manifest. */
async function nameByVersion(
  rig: ObjectsRig,
  put: (bytes: Uint8Array) => Promise<Sha256>,
  ...texts: readonly string[]
): Promise<void> {
  const { domainId } = await seedSite(rig.store);
  const files = texts.map((text, no) => ({
    path: `f${no}`,
    sha256: digestOf(text),
    size: text.length,
    mime: "text/plain",
  }));
  const devlove = { schema: "devlove/1", sha256: digestOf("{}") };
  const manifest = await put(Buffer.from(canonicalJson({ devlove, files })));
  await rig.store
    .insertInto("viewsets")
    .values({
      domain_id: domainId,
      name: "v",
      comment: "",
      files_blob: manifest,
      manifest_blob: null,
      when_created: rig.clock.now().toISOString(),
      when_obsoleted: null,
    })
    .execute();
}

test("a blob is an object under a key that only its row knows", async () => {
  await using rig = await startObjectsRig();
  const { blobs, directory } = await rig.central();
  expect(await blobs.put(Buffer.from("text"))).toBe(digestOf("text"));
  expect(await blobs.write(piecesOf("te", "xt"))).toBe(digestOf("text"));
  expect(await blobs.receive(digestOf("other"), piecesOf("oth", "er"), 5)).toBe("stored");
  expect(rig.keys()).toEqual(
    [digestOf("text"), digestOf("other")]
      .toSorted()
      .map((sha256) => expect.stringContaining(sha256)),
  );
  expect(rig.keys().some((key) => keyOf("text").test(key))).toBe(true);
  expect(await findingsOf(rig)).toEqual(nothingFound);
  expect(await rig.loose()).toEqual([]);
  expect(readdirSync(directory)).toEqual([]);
});

test.each([
  ["mismatch", digestOf("another"), piecesOf("text"), 10],
  ["too large", digestOf("text"), piecesOf("te", "xt"), 3],
  ["aborted", digestOf("text"), torn(), 10],
] as const)("%s: nothing is sent, and nothing left", async (outcome, sha256, body, bytesMax) => {
  await using rig = await startObjectsRig();
  const { blobs, directory } = await rig.central();
  expect(await blobs.receive(sha256, body, bytesMax)).toBe(outcome);
  expect([rig.server.asked, await rig.rows(), await rig.loose()]).toEqual([[], [], []]);
  expect(readdirSync(directory)).toEqual([]);
});

async function* torn(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("te");
  throw new Error("gone");
}

test("what makes a body fails as it fails", async () => {
  await using rig = await startObjectsRig();
  const { blobs } = await rig.central();
  await expect(blobs.write(torn())).rejects.toThrow("gone");
});

test("a bucket that refuses leaves no row; when it answers again the upload succeeds", async () => {
  await using rig = await startObjectsRig();
  const { blobs, collect } = await rig.central();
  rig.faults.choose = () => ({ kind: "status", status: 500, code: "InternalError" });
  await expect(blobs.put(Buffer.from("text"))).rejects.toEqual(unreachable);
  expect(await blobs.missing([digestOf("text")])).toEqual([digestOf("text")]);
  expect(await rig.rows()).toEqual([]);
  rig.faults.choose = () => passing;
  await blobs.put(Buffer.from("text"));
  await collect();
  expect([await findingsOf(rig), await rig.loose()]).toEqual([nothingFound, []]);
});

test("an upload whose answer got lost each time is written again, and what it left is removed", async () => {
  await using rig = await startObjectsRig();
  const { blobs, collect } = await rig.central();
  rig.faults.choose = (method) => (method === "PUT" ? { kind: "lost" } : passing);
  await expect(blobs.put(Buffer.from("text"))).rejects.toEqual(unreachable);
  expect(rig.keys()).toHaveLength(1);
  rig.faults.choose = () => passing;
  await blobs.put(Buffer.from("text"));
  expect(rig.keys()).toHaveLength(2);
  await collect();
  expect(rig.keys()).toHaveLength(1);
  expect(await findingsOf(rig)).toEqual(nothingFound);
});

test("killed between the object and its row: there is no such blob, and what lies there goes after the delay", async () => {
  await using rig = await startObjectsRig();
  const isPut = Promise.withResolvers<void>();
  const killed = await rig.central({
    put: async (key, source, sha256) => {
      await rig.bucket.put(key, source, sha256);
      isPut.resolve();
      return Promise.withResolvers<void>().promise;
    },
  });
  void killed.blobs.put(Buffer.from("text"));
  await isPut.promise;
  const [stray = ""] = rig.keys();
  const { blobs, collect } = await rig.central();
  expect(await blobs.sizeOf(digestOf("text"))).toBeUndefined();
  expect(await blobs.missing([digestOf("text")])).toEqual([digestOf("text")]);
  expect(await rig.loose()).toEqual([{ key: stray, state: "writing" }]);
  await nameByVersion(rig, async (bytes) => blobs.put(bytes), "text");
  await blobs.put(Buffer.from("text"));
  rig.clock.ms += deleteAfterMs;
  await collect();
  expect(rig.keys()).toContain(stray);
  rig.clock.ms += 1;
  expect(await collect()).toMatchObject({ removed: 0, stray: 1 });
  expect(rig.keys()).not.toContain(stray);
  expect([await findingsOf(rig), await rig.loose()]).toEqual([nothingFound, []]);
  expect(await buffer(await blobs.open(digestOf("text"), 0, 3))).toEqual(Buffer.from("text"));
});

test("an upload that took longer than the delay gets no row: its object may be gone", async () => {
  await using rig = await startObjectsRig();
  const [isPut, mayGoOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = await rig.central({
    put: async (key, source, sha256) => {
      await rig.bucket.put(key, source, sha256);
      isPut.resolve();
      await mayGoOn.promise;
    },
  });
  const upload = slow.blobs.put(Buffer.from("text"));
  await isPut.promise;
  rig.clock.ms += deleteAfterMs + 1;
  const { collect } = await rig.central();
  await collect();
  mayGoOn.resolve();
  await expect(upload).rejects.toEqual(unreachable);
  expect([await rig.rows(), rig.keys(), await rig.loose()]).toEqual([[], [], []]);
});

test("killed between the end of a row and the removal of its object: the next collection removes it", async () => {
  await using rig = await startObjectsRig();
  const { blobs, collect } = await rig.central();
  await blobs.put(Buffer.from("text"));
  rig.clock.ms += keptMs + 1;
  expect(await collect()).toMatchObject({ removed: 0, marked: 1 });
  rig.clock.ms += deleteAfterMs + 1;
  const isAsked = Promise.withResolvers<void>();
  const killed = await rig.central({
    remove: async () => {
      isAsked.resolve();
      return Promise.withResolvers<void>().promise;
    },
  });
  void killed.collect();
  await isAsked.promise;
  expect(await rig.rows()).toEqual([]);
  expect(await rig.loose()).toEqual([{ key: rig.keys()[0], state: "removing" }]);
  expect(await collect()).toMatchObject({ removed: 0, stray: 0 });
  expect([rig.keys(), await rig.loose()]).toEqual([[], []]);
});

test("a bucket that does not remove is asked again by the next collection", async () => {
  await using rig = await startObjectsRig();
  const { blobs, collect } = await rig.central();
  for (const text of ["one", "two"]) await blobs.put(Buffer.from(text));
  rig.clock.ms += keptMs + 1;
  await collect();
  rig.clock.ms += deleteAfterMs + 1;
  rig.faults.choose = (method) =>
    method === "DELETE" ? { kind: "status", status: 503, code: "SlowDown" } : passing;
  await expect(collect()).rejects.toEqual(unreachable);
  expect([await rig.rows(), rig.keys().length]).toEqual([[], 2]);
  rig.faults.choose = () => passing;
  await collect();
  expect([rig.keys(), await rig.loose()]).toEqual([[], []]);
});

test("two uploads of one digest at once: one object is kept, and the other removed", async () => {
  await using rig = await startObjectsRig();
  const both = Promise.withResolvers<void>();
  let begun = 0;
  const put: Parameters<typeof rig.central>[0] = {
    put: async (key, source, sha256) => {
      await rig.bucket.put(key, source, sha256);
      if (++begun === 2) both.resolve();
      await both.promise;
    },
  };
  const [one, two] = [await rig.central(put), await rig.central(put)];
  await Promise.all([one, two].map(async ({ blobs }) => blobs.put(Buffer.from("text"))));
  expect(rig.keys()).toHaveLength(2);
  expect(await findingsOf(rig)).toEqual(nothingFound);
  await one.collect();
  expect(rig.keys()).toHaveLength(1);
  expect([await findingsOf(rig), await rig.loose()]).toEqual([nothingFound, []]);
});

test("many uploads of one digest at one central, in one commit", async () => {
  await using rig = await startObjectsRig();
  const { blobs, collect } = await rig.central();
  const uploads = Array.from({ length: 20 }, async () => blobs.put(Buffer.from("text")));
  expect(new Set(await Promise.all(uploads))).toEqual(new Set([digestOf("text")]));
  await collect();
  expect([rig.keys().length, await findingsOf(rig)]).toEqual([1, nothingFound]);
});

test("what is marked counts as not there, and an upload of it takes the mark away, without an object more", async () => {
  await using rig = await startObjectsRig();
  const { blobs, collect } = await rig.central();
  await blobs.put(Buffer.from("text"));
  const before = rig.keys();
  rig.clock.ms += keptMs + 1;
  await collect();
  expect(await blobs.missing([digestOf("text")])).toEqual([digestOf("text")]);
  // An agent that was told of it may fetch it still.
  expect(await blobs.sizeOf(digestOf("text"))).toBe(4);
  expect(await blobs.receive(digestOf("text"), piecesOf("text"), 4)).toBe("stored");
  expect([rig.keys(), (await rig.rows()).map((row) => row.when_dead)]).toEqual([before, [null]]);
  rig.clock.ms += keptMs;
  await collect();
  expect(await blobs.missing([digestOf("text")])).toEqual([]);
});

test("what is marked, and whose object a restored store has lost, is stored anew", async () => {
  await using rig = await startObjectsRig();
  const { blobs, collect } = await rig.central();
  await blobs.put(Buffer.from("text"));
  rig.clock.ms += keptMs + 1;
  await collect();
  rig.server.objects.clear();
  await blobs.put(Buffer.from("text"));
  expect([rig.keys().length, await findingsOf(rig)]).toEqual([1, nothingFound]);
});

test("a transaction that names a marked blob takes the mark away; so does a collection that finds it named", async () => {
  await using rig = await startObjectsRig();
  const { blobs, collect } = await rig.central();
  await blobs.put(Buffer.from("named"));
  await blobs.put(Buffer.from("held"));
  rig.clock.ms += keptMs + 1;
  expect(await collect()).toMatchObject({ marked: 2 });
  await rig.store.transaction().execute(async (tx) => holdBlobs(tx, [digestOf("held"), null]));
  expect(await blobs.missing([digestOf("held")])).toEqual([]);
  await nameByVersion(rig, async (bytes) => blobs.put(bytes), "named");
  await collect();
  expect(await blobs.missing([digestOf("named")])).toEqual([]);
  rig.clock.ms += deleteAfterMs + keptMs;
  await collect();
  expect(await blobs.sizeOf(digestOf("named"))).toBe(5);
  expect(await findingsOf(rig)).toEqual(nothingFound);
});

test("what is removed by who made it goes after the delay, too", async () => {
  await using rig = await startObjectsRig();
  const { blobs, collect } = await rig.central();
  await blobs.remove(await blobs.put(Buffer.from("set")));
  rig.clock.ms += deleteAfterMs;
  await collect();
  expect(rig.keys()).toHaveLength(1);
  rig.clock.ms += 1;
  await collect();
  expect(rig.keys()).toEqual([]);
});

test("a read that cannot be had fails, one of other bytes as well, and never gives less", async () => {
  await using rig = await startObjectsRig();
  const { blobs } = await rig.central();
  const sha256 = await blobs.put(Buffer.from("text"));
  expect(String(await blobs.read(sha256))).toBe("text");
  expect(await blobs.read(digestOf("none"))).toBeUndefined();
  expect(String(await buffer(await blobs.open(sha256, 1, Infinity)))).toBe("ext");
  const [key = ""] = [...rig.server.objects.keys()];
  rig.server.objects.set(key, Buffer.from("tex!"));
  await expect(blobs.read(sha256)).rejects.toEqual(unreachable);
  rig.server.objects.clear();
  await expect(blobs.read(sha256)).rejects.toEqual(unreachable);
  await expect(blobs.open(sha256, 0, 3)).rejects.toEqual(unreachable);
});

test("the empty blob is one", async () => {
  await using rig = await startObjectsRig();
  const { blobs } = await rig.central();
  expect(await blobs.receive(digestOf(""), piecesOf(), 0)).toBe("stored");
  expect(await blobs.read(digestOf(""))).toEqual(Buffer.alloc(0));
});

type Step =
  | { readonly kind: "put"; readonly central: number; readonly text: string }
  | { readonly kind: "collect"; readonly central: number }
  | { readonly kind: "pass"; readonly ms: number };

const texts = ["a", "b", "c"] as const;
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("put" as const),
      central: fc.nat(1),
      text: fc.constantFrom(...texts),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("collect" as const), central: fc.nat(1) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("pass" as const),
      ms: fc.constantFrom(hourMs, keptMs + 1, 5 * dayMs, deleteAfterMs + 1),
    }),
  },
);

test("uploads and collections of two centrals beside each other, in any order: never a row without its object", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { minLength: 1, maxLength: 5 }), { maxLength: 5 }),
      async (rounds) => {
        await using rig = await startObjectsRig();
        const centrals = [await rig.central(), await rig.central()] as const;
        for (const round of rounds) {
          await Promise.all(
            round.map(async (one) => {
              switch (one.kind) {
                case "put": {
                  const { blobs } = centrals[one.central === 0 ? 0 : 1];
                  const sha256 = await blobs.put(Buffer.from(one.text));
                  // Young now: no collection takes it.
                  expect(await blobs.sizeOf(sha256)).toBe(1);
                  return;
                }
                case "collect":
                  await centrals[one.central === 0 ? 0 : 1].collect();
                  return;
                case "pass":
                  return;
                default:
                  one satisfies never;
              }
            }),
          );
          expect(await findingsOf(rig)).toEqual(nothingFound);
          for (const one of round) if (one.kind === "pass") rig.clock.ms += one.ms;
        }
        rig.clock.ms += keptMs + 1;
        await centrals[0].collect();
        rig.clock.ms += deleteAfterMs + 1;
        await centrals[1].collect();
        expect([rig.keys(), await rig.rows(), await rig.loose()]).toEqual([[], [], []]);
      },
    ),
    { numRuns: 8 },
  );
}, 120_000);
