// Backup and restore by the real commands: what comes back is what was there, what is damaged or cut off is refused by name, and no kill leaves half a store.

import {
  appendFileSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openSqlite } from "../../../src/base/sqlite.ts";
import { until } from "../../support/until.ts";
import { BackupRig, contentOf, packageFile, texts } from "./rig.ts";

vi.setConfig({ testTimeout: 400_000 }); // Commands are processes.

test("a backup with the key comes back whole, in a store with another epoch", async () => {
  using rig = new BackupRig();
  const digests = await rig.prepare(texts);
  noteNumbers(rig.stateDir, "the numbers of requests");
  const backup = await rig.run("backup", rig.backup, "--with-key");
  expect(backup).toMatchObject({ code: 0 });
  expect(backup.said).toContain("300 with");
  expect(backup.said).toContain("300 of them linked");
  expect(backup.said).toContain("THE KEY IS IN IT");
  const before = contentOf(rig.backup);
  const restored = join(rig.dir, "restored");
  rig.writeSettings(restored);
  const restore = await rig.run("restore", rig.backup);
  expect(restore).toMatchObject({ code: 0 });
  const after = contentOf(restored);
  const own = contentOf(rig.stateDir);
  for (const path of [
    "central.key",
    packageFile,
    ...digests.map((sha256) => `blobs/${sha256.slice(0, 2)}/${sha256}`),
  ])
    expect(after.get(path), path).toBe(own.get(path));
  expect([...after.keys()].filter((path) => path.startsWith("logs/")).sort()).toEqual([
    "logs/2030-01-14.db",
    "logs/2030-01-15.db",
    "logs/restored",
  ]);
  expect([...after.keys()].filter((path) => path.startsWith("packages/"))).toEqual([packageFile]);
  expect(await rig.epoch(restored)).not.toBe(await rig.epoch(rig.stateDir));
  expect(notedNumbers(restored)).toBe("the numbers of requests");
  // Nothing of it is shared with the backup, which can be restored again.
  expect(contentOf(rig.backup)).toEqual(before);
  const blob = `blobs/${digests[0]?.slice(0, 2)}/${digests[0]}`;
  expect(statSync(join(restored, blob)).ino).not.toBe(statSync(join(rig.backup, blob)).ino);
});

const numbersFile = "analytics.db";

function noteNumbers(stateDir: string, text: string): void {
  const db = openSqlite(join(stateDir, numbersFile), { sync: "full" });
  db.exec("CREATE TABLE note (text TEXT) STRICT");
  db.prepare("INSERT INTO note VALUES (?)").run(text);
  db.close();
}

function notedNumbers(stateDir: string): unknown {
  const db = openSqlite(join(stateDir, numbersFile), { sync: "full", readonly: true });
  const row: unknown = db.prepare("SELECT text FROM note").get();
  db.close();
  return Object(row)["text"];
}

test("without the key, and where there is none, that is said loudly; so it is when it is restored", async () => {
  using rig = new BackupRig();
  await rig.prepare(["a"]);
  // As it is meant where the key is kept apart: all is well.
  expect(await rig.run("backup", rig.backup)).toMatchObject({
    code: 0,
    said: expect.stringContaining("WITHOUT THE KEY"),
  });
  expect(existsSync(join(rig.backup, "central.key"))).toBe(false);
  rmSync(join(rig.stateDir, "central.key"));
  const missing = await rig.run("backup", `${rig.backup}2`, "--with-key");
  expect(missing).toMatchObject({ code: 3 });
  expect(missing.said).toContain("THE KEY IS MISSING");
  expect(missing.said).toContain("the backup lacks a key file that opens it");
  rig.writeSettings(join(rig.dir, "restored"));
  const restore = await rig.run("restore", rig.backup);
  expect(restore).toMatchObject({ code: 0 });
  expect(restore.said).toContain("THE KEY IS MISSING");
});

test("a blob or a package that the disk lost is told, and does not keep the rest from coming back", async () => {
  using rig = new BackupRig();
  const [lost = ""] = await rig.prepare(["a", "b"]);
  rmSync(join(rig.stateDir, "blobs", lost.slice(0, 2), lost));
  rmSync(join(rig.stateDir, packageFile));
  const { code, said } = await rig.run("backup", rig.backup);
  expect(code).toBe(3);
  expect(said).toMatch(/the backup lacks 1 blobs and 1 packages\n.*Put back what is missing/);
  expect(said).toMatch(new RegExp(`NOT WHOLE: 1 blobs are missing .*: ${lost}$`, "m"));
  expect(said).toMatch(
    new RegExp(`NOT WHOLE: 1 packages are missing .*: ${basename(packageFile)}$`, "m"),
  );
  rig.writeSettings(join(rig.dir, "restored"));
  expect(await rig.run("restore", rig.backup)).toMatchObject({ code: 0 });
});

describe("what cannot be restored is refused, by name, and nothing is written", () => {
  const rows: readonly (readonly [string, (backup: string, blob: string) => void, RegExp])[] = [
    [
      "no manifest",
      (backup) => rmSync(join(backup, "manifest.json")),
      /no manifest\.json: it is not a backup, or an unfinished one/,
    ],
    [
      "half a manifest",
      (backup) => truncateSync(join(backup, "manifest.json"), 100),
      /manifest\.json is damaged/,
    ],
    [
      "another format",
      (backup) => writeFileSync(join(backup, "manifest.json"), '{"format":"tar"}'),
      /not of the format accel-central-backup\/1/,
    ],
    [
      "a store that was cut off",
      (backup) => truncateSync(join(backup, "central.db"), 8_192),
      /central\.db: cut off at byte 8192 of \d+/,
    ],
    [
      "a day of logs with another byte",
      (backup) => writeFileSync(join(backup, "logs/2030-01-14.db"), "x", { flag: "r+" }),
      /logs\/2030-01-14\.db: its content differs/,
    ],
    [
      "a day of logs that grew",
      (backup) => appendFileSync(join(backup, "logs/2030-01-15.db"), "x"),
      /logs\/2030-01-15\.db: has \d+ bytes, \d+ were backed up/,
    ],
    [
      "a blob with another byte",
      (backup, path) => writeFileSync(join(backup, path), "fIle 0\n"),
      /blobs\/[0-9a-f]{2}\/[0-9a-f]{64}: its content differs/,
    ],
    [
      "a blob that is missing",
      (backup, blob) => rmSync(join(backup, blob)),
      /blobs\/[0-9a-f]{2}\/[0-9a-f]{64}: is missing/,
    ],
  ];
  let rig: BackupRig;
  let blob = "";
  beforeAll(async () => {
    rig = new BackupRig();
    const [first = ""] = await rig.prepare(texts.slice(0, 3));
    blob = `blobs/${first.slice(0, 2)}/${first}`;
    expect(await rig.run("backup", rig.backup)).toMatchObject({ code: 0 });
    rig.writeSettings(join(rig.dir, "restored"));
  });
  afterAll(() => rig[Symbol.dispose]());

  test.each(rows)("%s", async (_, damage, told) => {
    const damaged = join(rig.dir, "damaged");
    cpSync(rig.backup, damaged, { recursive: true });
    damage(damaged, blob);
    const { code, said } = await rig.run("restore", damaged);
    rmSync(damaged, { recursive: true });
    expect({ code, said }).toMatchObject({ code: 1 });
    expect(said).toMatch(told);
    expect(readdirSync(join(rig.dir, "restored"))).toEqual(["lock"]);
  });

  test("a state directory that is not empty", async () => {
    using rig = new BackupRig();
    await rig.prepare(["a"]);
    expect(await rig.run("backup", rig.backup)).toMatchObject({ code: 0 });
    const before = contentOf(rig.stateDir);
    const { code, said } = await rig.run("restore", rig.backup);
    expect(code).toBe(2);
    expect(said).toMatch(/is not empty, it has (?:blobs|central\.db|logs|packages)/);
    expect(contentOf(rig.stateDir)).toEqual(before);
  });
});

test("a backup goes nowhere where something is, and a directory without a store has none", async () => {
  using rig = new BackupRig();
  expect((await rig.run("backup", rig.backup)).said).toMatch(/there is no store in/);
  await rig.prepare(["a"]);
  mkdirSync(rig.backup);
  const { code, said } = await rig.run("backup", rig.backup);
  expect({ code, said }).toMatchObject({ code: 2 });
  expect(said).toMatch(/exists: a backup needs a new directory/);
  expect(rig.unfinished()).toEqual([]);
});

test("a store at which a newer release was is refused with both schemas, and the backup from before comes back", async () => {
  using rig = new BackupRig();
  await rig.prepare(texts);
  expect(await rig.run("backup", rig.backup, "--with-key")).toMatchObject({ code: 0 });
  const newer = openSqlite(join(rig.stateDir, "central.db"), { sync: "full" });
  newer.exec("insert into kysely_migration (name, timestamp) values ('9999-later', '2099')");
  newer.close();
  const refused = await rig.run("serve");
  expect(refused.code).toBe(1);
  expect(refused.said).toMatch(
    /central\.db is of a newer release: its schema is at 9999-later, and this release knows \d{4}-[a-z-]+\n.*restore the backup from before the update/,
  );
  const restored = join(rig.dir, "restored");
  rig.writeSettings(restored);
  expect(await rig.run("restore", rig.backup)).toMatchObject({ code: 0 });
  expect(await rig.epoch(restored)).toMatch(/^[0-9a-f]{32}$/);
});

test("a store that is damaged is no backup", async () => {
  using rig = new BackupRig();
  await rig.prepare(texts);
  const path = join(rig.stateDir, "central.db");
  const page = Buffer.alloc(4_096, 0x5a);
  for (let at = 3 * 4_096; at < statSync(path).size; at += 4_096) writeAt(path, page, at);
  const { code, said } = await rig.run("backup", rig.backup);
  expect({ code, said }).toMatchObject({ code: 1 });
  expect(said).toMatch(/is damaged|malformed/);
  expect(existsSync(rig.backup)).toBe(false);
  expect(rig.unfinished()).toEqual([]);
});

test("kill -9 in the middle: a backup is whole or is called unfinished, and that is refused", async () => {
  using rig = new BackupRig();
  await rig.prepare(texts);
  for (const blobs of [0, 1, 40, 120]) {
    await using program = await rig.command("backup", rig.backup);
    await until("so far", () => {
      const [name] = rig.unfinished();
      if (name === undefined) return false;
      const fans = join(rig.dir, name, "blobs");
      return blobs === 0 || (existsSync(fans) && readdirSync(fans).length >= blobs);
    });
    await program.kill();
    const [name = ""] = rig.unfinished();
    expect(existsSync(rig.backup)).toBe(false);
    rig.writeSettings(join(rig.dir, "restored"));
    const { code, said } = await rig.run("restore", join(rig.dir, name));
    expect({ code, said }).toMatchObject({ code: 1 });
    expect(said).toMatch(/it is not a backup, or an unfinished one/);
    rmSync(join(rig.dir, name), { recursive: true });
    rig.writeSettings(rig.stateDir);
  }
  expect(await rig.run("backup", rig.backup)).toMatchObject({ code: 0 });
});

test("kill -9 in the middle of a restore: central does not start beside it, the next one makes it whole", async () => {
  using rig = new BackupRig();
  await rig.prepare(texts);
  expect(await rig.run("backup", rig.backup, "--with-key")).toMatchObject({ code: 0 });
  const restored = join(rig.dir, "restored");
  rig.writeSettings(restored);
  for (const blobs of [0, 1, 100]) {
    await using program = await rig.command("restore", rig.backup);
    await until("so far", () => {
      if (!existsSync(join(restored, "restore.unfinished"))) return false;
      const fans = join(restored, "blobs");
      return blobs === 0 || (existsSync(fans) && readdirSync(fans).length >= blobs);
    });
    await program.kill();
    const serve = await rig.run("serve");
    expect(serve.code).toBe(1);
    expect(serve.said).toMatch(/was cut off/);
  }
  expect(await rig.run("restore", rig.backup)).toMatchObject({ code: 0 });
  const blobsOf = (root: string) =>
    new Map([...contentOf(root)].filter(([path]) => path.startsWith("blobs/")));
  expect(blobsOf(restored)).toEqual(blobsOf(rig.backup));
  expect(existsSync(join(restored, "restore.unfinished"))).toBe(false);
});

function writeAt(path: string, bytes: Uint8Array, at: number): void {
  const file = openSync(path, "r+");
  try {
    writeSync(file, bytes, 0, bytes.byteLength, at);
  } finally {
    closeSync(file);
  }
}
