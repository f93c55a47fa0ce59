// What a scrub asks of the cache: the bodies that lie in files, damaged ones that become misses, and an index that is replaced when it is not whole.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BodyList } from "../../../../src/agent/cache/index/body-list.ts";
import type { WalkMessage } from "../../../../src/agent/scrub/messages.ts";
import { Walk } from "../../../../src/agent/scrub/walk.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { bodyOf, isHit, keyOf, objectFiles, openedRig, store, tamper } from "../rig.ts";

const large = "x".repeat(200_000);

function scrubbed(stateDir: string): readonly WalkMessage[] {
  const told: WalkMessage[] = [];
  new Walk({
    blobsDir: stateDir, // None are here.
    bodies: new BodyList(join(stateDir, "cache")),
    from: { stage: "bodies", after: "" },
    pace: { spend: () => true },
    nowMs: () => 0,
    tell: (message) => told.push(message),
  }).run();
  return told;
}

test("a body whose bytes changed in its size is found, and is a miss from then on; the others are served", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  const keys = Array.from({ length: 5 }, (_, no) => keyOf({ path: `/${no}` }));
  for (const [no, key] of keys.entries()) await store(rig.cache, key, `${no}${large}`);
  await store(rig.cache, keyOf({ path: "/small" }));
  expect(scrubbed(dir.path).filter(({ kind }) => kind.startsWith("damaged"))).toEqual([]);
  const file = objectFiles(dir.path).find((path) => readFileSync(path, "utf8").startsWith("3"));
  if (file === undefined) throw new Error("no file");
  writeFileSync(file, `3${large.slice(1)}!`);
  const found = scrubbed(dir.path).filter((one) => one.kind === "damaged body");
  const [entry] = rig.cache.find(keys[3] ?? keyOf());
  const reason = "its bytes do not match its digest";
  expect(found).toEqual([{ kind: "damaged body", id: entry?.id, reason }]);
  expect(scrubbed(dir.path)).toContainEqual(expect.objectContaining({ what: "bodies", count: 5 }));
  await rig.client.lost(found.map(({ id }) => id));
  await until("it is a miss", () => !isHit(rig.cache, keys[3] ?? keyOf()));
  expect(await bodyOf(rig.cache, keys[4] ?? keyOf())).toBe(`4${large}`);
});

test("an index that is whole stays; missing bodies are no fault of it", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  const key = keyOf({ path: "/kept" });
  await store(rig.cache, key);
  expect(await rig.client.scrub()).toEqual({ kind: "whole" });
  expect(isHit(rig.cache, key)).toBe(true);
});

test("an index that is damaged is replaced by an empty one, which stores again", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  const key = keyOf({ path: "/lost" });
  await store(rig.cache, key);
  tamper(dir.path, "DELETE FROM entry_key");
  expect(await rig.client.scrub()).toEqual({
    kind: "damaged",
    reason: expect.stringContaining("are not found by their keys"),
  });
  await until("it is said", () => rig.health.list().some(({ code }) => code === "cache_dropped"));
  await until("it stores again", async () => (await store(rig.cache, key)).kind === "stored");
  expect(await rig.client.scrub()).toEqual({ kind: "whole" });
});
