// Looking through a backup: what is whole is counted, and each file at fault is named with its fault before anything is made of it.

import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { verifyBackup } from "../../../src/central/backup/verify-backup.ts";
import { tempDir } from "../../support/temp-dir.ts";

const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex");
const never = new AbortController().signal;

type Made = {
  readonly files?: Readonly<Record<string, string>>;
  readonly blobs?: readonly string[];
  /** What the manifest says of the number of blobs, where that is another. */
  readonly count?: number;
  readonly lost?: readonly string[];
};

const pathOf = (text: string): string => `blobs/${digestOf(text).slice(0, 2)}/${digestOf(text)}`;

/** A backup of these files and blobs, whose store has rows of the blobs, ten a page. */
function made(dir: string, { files = { "central.db": "store" }, blobs = [], count, lost }: Made) {
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  };
  for (const [path, text] of Object.entries(files)) put(path, text);
  for (const text of blobs) put(pathOf(text), text);
  const listed = Object.entries(files).map(([path, text]) => ({
    path,
    bytes: Buffer.byteLength(text),
    sha256: digestOf(text),
  }));
  const told = { count: count ?? blobs.length, bytes: blobs.join("").length, lost: lost ?? [] };
  const when = "2031-05-06T07:08:09.010Z";
  const manifest = { format: "accel-central-backup/1", release: "1.0.0", epoch: "e" };
  const times = { when_begun: when, when_finished: when, with_key: false };
  put("manifest.json", JSON.stringify({ ...manifest, ...times, files: listed, blobs: told }));
  const stored = {
    epoch: async () => "e",
    objectsInBucket: async () => false,
    packages: async () => new Set<string>(),
    blobs: async function* () {
      const rows = blobs.map((text) => ({ sha256: digestOf(text), size: text.length }));
      for (const sha256 of lost ?? []) rows.push({ sha256, size: 5 });
      for (let at = 0; at < rows.length; at += 10) yield rows.slice(at, at + 10);
    },
  };
  return { put, verify: async () => verifyBackup(dir, stored, never) };
}

test("of a whole one it tells what is to be brought back, and how many bytes that is", async () => {
  using dir = tempDir();
  const blobs = Array.from({ length: 25 }, (_, no) => `blob ${no}`);
  const files = { "central.db": "store", "logs/2030-01-15.db": "day" };
  const { verify } = made(dir.path, { files, blobs, lost: [digestOf("lost")] });
  const { paths, bytes, manifest } = await verify();
  expect(paths).toEqual([...Object.keys(files), ...blobs.map(pathOf)]);
  expect(bytes).toBe(5 + 3 + blobs.join("").length);
  expect(manifest.blobs.lost).toEqual([digestOf("lost")]);
});

test("an empty one has no bytes", async () => {
  using dir = tempDir();
  expect(await made(dir.path, { files: {} }).verify()).toMatchObject({ paths: [], bytes: 0 });
});

test.each<readonly [string, string, string]>([
  ["cut off", "sto", "central.db: cut off at byte 3 of 5"],
  ["longer", "stored", "central.db: has 6 bytes, 5 were backed up"],
  [
    "as long and another",
    "STORE",
    `central.db: its content differs: its digest is ${digestOf("STORE")}, ${digestOf("store")} was backed up`,
  ],
])("a file that is %s is told", async (_what, text, told) => {
  using dir = tempDir();
  const { put, verify } = made(dir.path, {});
  put("central.db", text);
  await expect(verify()).rejects.toMatchObject({
    code: "BACKUP_DAMAGED",
    message: `the backup ${dir.path} is damaged:\n  ${told}`,
  });
});

test("all faults are told at once, the first twenty by name", async () => {
  using dir = tempDir();
  const blobs = Array.from({ length: 25 }, (_, no) => `blob ${no}`);
  const { put, verify } = made(dir.path, { blobs });
  for (const text of blobs.slice(0, 22)) put(pathOf(text), "");
  const named = blobs
    .slice(0, 20)
    .map((text) => `  ${pathOf(text)}: cut off at byte 0 of ${text.length}`);
  await expect(verify()).rejects.toMatchObject({
    message: [`the backup ${dir.path} is damaged:`, ...named, "  and 2 more"].join("\n"),
  });
});

test("a store with other blobs than the manifest says is told", async () => {
  using dir = tempDir();
  const { verify } = made(dir.path, { blobs: ["one"], count: 2 });
  await expect(verify()).rejects.toMatchObject({
    message: expect.stringContaining(
      "central.db has rows of 1 blobs, the manifest says 2",
    ) as unknown,
  });
});
