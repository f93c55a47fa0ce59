// Restoring at boot: what is on disk is served without central, and health says what of it is missing.

import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { blobPath } from "../../../src/core/blob-path.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { digest } from "./fake-central.ts";
import { devlove, names, never, setUp, site } from "./fixture.ts";

type Spoil = readonly [string, (path: (content: string) => string) => void, RegExp];

test.each<Spoil>([
  ["a missing file", (path) => rmSync(path("<p>home")), /1 of its files .*"index.html"/],
  ["a cut file", (path) => truncateSync(path("<p>home"), 3), /1 of its files .*"index.html"/],
])("%s: the others are served, said in health, healed by preparing", async (_, spoil, reason) => {
  using dir = tempDir();
  const { central, viewsets, health } = await setUp(dir.path);
  const manifest = central.addViewset(devlove, site);
  const { table } = await viewsets.prepare(manifest, names, never);
  spoil((content) => blobPath(viewsets.blobsDir, digest(content)));
  const restored = await viewsets.restore(manifest, names);
  expect(restored).toMatchObject({ ready: { manifest }, isWhole: false });
  expect(tableBytes(restored?.ready.table)).toEqual(tableBytes(table));
  expect(health.list()).toMatchObject([
    { code: "viewset_damaged", severity: "error", text: expect.stringMatching(reason) },
  ]);
  await viewsets.prepare(manifest, names, never);
  expect(await viewsets.restore(manifest, names)).toMatchObject({ isWhole: true });
});

const tableBytes = (table: SharedArrayBuffer | null | undefined): Buffer =>
  Buffer.from(table ?? new SharedArrayBuffer(0));

const spoils: readonly Spoil[] = [
  ["a missing devlove", (path) => rmSync(path(devlove)), /devlove file is missing/],
  ["a damaged devlove", (path) => writeFileSync(path(devlove), "{}"), /devlove file .* damaged/],
];
test.each(spoils)(
  "%s: not served from disk, said in health, healed by preparing",
  async (_, spoil, reason) => {
    using dir = tempDir();
    const { central, viewsets, health } = await setUp(dir.path);
    const manifest = central.addViewset(devlove, site);
    await viewsets.prepare(manifest, names, never);
    spoil((content) => blobPath(viewsets.blobsDir, digest(content)));
    expect(await viewsets.restore(manifest, names)).toBeUndefined();
    expect(health.list()).toMatchObject([
      { code: "viewset_incomplete", text: expect.stringMatching(reason) },
    ]);
    await viewsets.prepare(manifest, names, never);
    expect(health.list()).toEqual([]);
    expect(await viewsets.restore(manifest, names)).toMatchObject({
      ready: { manifest },
      isWhole: true,
    });
  },
);

test("a manifest that was never here", async () => {
  using dir = tempDir();
  const { viewsets, health } = await setUp(dir.path);
  expect(await viewsets.restore(digest("nothing"), names)).toBeUndefined();
  expect(health.list()).toMatchObject([{ text: expect.stringMatching(/manifest/) }]);
});

test("a sub-domain that was unlinked meanwhile is no reason not to serve", async () => {
  using dir = tempDir();
  const { central, viewsets } = await setUp(dir.path);
  const manifest = central.addViewset(devlove, site);
  await viewsets.prepare(manifest, names, never);
  const fewer = { name: names.name, subDomains: [] };
  await expect(viewsets.prepare(manifest, fewer, never)).rejects.toThrow(/static.example.com/);
  expect(await viewsets.restore(manifest, fewer)).toMatchObject({ ready: { manifest } });
});

test("names that differ only in case are refused before they are in force, not when they are", async () => {
  using dir = tempDir();
  const { central, viewsets } = await setUp(dir.path);
  const manifest = central.addViewset(devlove, { "a.html": "small", "A.html": "capital" });
  await expect(viewsets.prepare(manifest, names, never)).rejects.toThrow(/differ only in case/);
  for (const [sha256, bytes] of central.blobs) {
    const path = blobPath(viewsets.blobsDir, sha256);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
  }
  expect(await viewsets.restore(manifest, names)).toMatchObject({ ready: { manifest } });
  // What the host holds is repaired and gone back to as well.
  rmSync(blobPath(viewsets.blobsDir, digest("small")));
  const held = { domain: names.name, manifest, standing: "kept" as const, activatedAt: "" };
  const holding = await setUp(dir.path, central, { held: () => [held], giveUp: () => undefined });
  expect(await holding.viewsets.prepare(manifest, names, never)).toMatchObject({ manifest });
  await holding.viewsets[Symbol.asyncDispose]();
});

test("central is not asked", async () => {
  using dir = tempDir();
  const { central, viewsets } = await setUp(dir.path);
  const manifest = central.addViewset(devlove, site);
  await viewsets.prepare(manifest, names, never);
  const asked = central.asked.length;
  await (await setUp(dir.path, central)).viewsets.restore(manifest, names);
  expect(central.asked.length).toBe(asked);
});

test("what lies here in its size with other bytes is removed and fetched again; what is right, or not here, stays so", async () => {
  using dir = tempDir();
  const { central, viewsets } = await setUp(dir.path);
  const manifest = central.addViewset(devlove, site);
  await viewsets.prepare(manifest, names, never);
  const [rotten, right] = [digest("<p>home"), digest("<p>b")];
  const pathOf = (sha256: typeof rotten): string => blobPath(viewsets.blobsDir, sha256);
  writeFileSync(pathOf(rotten), "<p>hOme");
  const { ino } = statSync(pathOf(right));
  await viewsets.dropDamaged([rotten, right, digest("never here")]);
  expect(existsSync(pathOf(rotten))).toBe(false);
  expect(statSync(pathOf(right)).ino).toBe(ino);
  await viewsets.prepare(manifest, names, never);
  expect(readFileSync(pathOf(rotten), "utf8")).toBe("<p>home");
});
