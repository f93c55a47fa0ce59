// Restoring at boot: what is on disk is served without central, and health says what of it is missing.

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { blobPath } from "../../../src/core/blob-path.ts";
import { tempDir } from "../../support/temp-dir.ts";
import type { Manifest } from "../../../src/wire/manifest.ts";
import { until } from "../../support/until.ts";
import { digest, type FakeCentral } from "./fake-central.ts";
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

/** Puts everything that central has of it on this disk, as an earlier release did that took it. */
function take(central: FakeCentral, blobsDir: string): void {
  for (const [sha256, bytes] of central.blobs) {
    const path = blobPath(blobsDir, sha256);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
  }
}

const withDomain = (config: object): string =>
  JSON.stringify({ domains: { "www.example.com": config } });
const contradiction = withDomain({ cache: { rules: [{ path: "/a", ttl_s: 1, bypass: true }] } });
const unknownKeys = withDomain({ colour: "red", index: ["home.html"], static: { max_age_s: 5 } });
const loop = withDomain({ backend: { urls: ["http://127.0.0.1:9464"] } });
const beyondRange = withDomain({ backend: { urls: ["http://10.0.0.1"], retries: 9 } });

test.each<readonly [string, string, ((manifest: Manifest) => unknown) | undefined, RegExp]>([
  ["a rule that contradicts itself", contradiction, undefined, /no effect with `bypass/],
  ["a key that is not known", unknownKeys, undefined, /"colour" is not a known key/],
  ["a number out of range", beyondRange, undefined, /retries: must be 0 to 3/],
  ["a backend that is a listener now", loop, undefined, /is a listener of the agent itself/],
  ["another member of the manifest", devlove, (one) => ({ ...one, more: 1 }), /manifest: .*more/],
  [
    "a path that climbs",
    devlove,
    ({ files, ...one }) => ({
      ...one,
      files: files?.map((file, i) => (i === 1 ? { ...file, path: "../b" } : file)),
    }),
    /no path below the root/,
  ],
])(
  "%s is no reason not to serve what was taken before; it is for what is new",
  async (_, text, change, reason) => {
    using dir = tempDir();
    const rules = {
      backendGuard: ({ port }: URL) =>
        port === "9464" ? "is a listener of the agent itself" : undefined,
    };
    const { central, viewsets } = await setUp(dir.path, undefined, undefined, rules);
    const manifest = central.addViewset(text, site, change);
    await expect(viewsets.prepare(manifest, names, never)).rejects.toThrow(reason);
    take(central, viewsets.blobsDir);
    const restored = await viewsets.restore(manifest, names);
    const objections = expect.stringMatching(reason);
    expect(restored).toMatchObject({ ready: { manifest, objections }, isWhole: true });
    expect(restored?.ready.table).not.toBeNull();
    // What is lost of it is fetched again, whatever the rules are now.
    rmSync(blobPath(viewsets.blobsDir, digest("<p>home")));
    using mended = await viewsets.prepare(manifest, names, never, "as taken");
    expect(mended).toMatchObject({ manifest, objections });
    expect(await viewsets.restore(manifest, names)).toMatchObject({ isWhole: true });
  },
);

test("a newer release serves a devlove with what it knows of it", async () => {
  using dir = tempDir();
  const { central, viewsets } = await setUp(dir.path);
  const manifest = central.addViewset(unknownKeys, site);
  take(central, viewsets.blobsDir);
  const restored = await viewsets.restore(manifest, names);
  const config = { index: ["home.html"], static: { max_age_s: 5 } };
  expect(restored?.ready.devlove).toEqual({ domains: { "www.example.com": config } });
});

test.each([
  ["another type", withDomain({ index: "home.html" }), /index: is not a list/],
  ["an unknown word", withDomain({ bots: { mode: "guess" } }), /mode: is none of enforce/],
  ["no domains", "{}", /domains: is missing/],
])("what has %s has no shape, and is not served", async (_, text, reason) => {
  using dir = tempDir();
  const { central, viewsets, health } = await setUp(dir.path);
  const manifest = central.addViewset(text, site);
  take(central, viewsets.blobsDir);
  expect(await viewsets.restore(manifest, names)).toBeUndefined();
  expect(health.list()).toMatchObject([{ text: expect.stringMatching(reason) }]);
});

test("a good file that takes the place of a damaged one while that is read stays", async () => {
  using dir = tempDir();
  const { central, viewsets } = await setUp(dir.path);
  const manifest = central.addViewset(devlove, site);
  await viewsets.prepare(manifest, names, never);
  const path = blobPath(viewsets.blobsDir, digest("<p>home"));
  truncateSync(path, 2 ** 29); // Half a gibibyte of zeros takes a while to read.
  const dropping = viewsets.dropDamaged([digest("<p>home")]);
  await until("it is read", () =>
    readdirSync("/proc/self/fd").some((fd) => linkOf(`/proc/self/fd/${fd}`) === path),
  );
  writeFileSync(`${path}.new`, "<p>home");
  renameSync(`${path}.new`, path);
  await dropping;
  expect(readFileSync(path, "utf8")).toBe("<p>home");
});

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined; // Closed meanwhile.
  }
}
