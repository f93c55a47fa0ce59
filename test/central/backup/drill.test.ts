// A backup proved while nothing is touched, and a store that comes to another key: by the real commands, cut off and damaged.

import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { createSealer, openKeyFile, openKeysOfFile } from "../../../src/base/seal.ts";
import { openSqlite } from "../../../src/base/sqlite.ts";
import { openStore } from "../../../src/central/store/engine/database.ts";
import { openAllSealed } from "../../../src/central/store/sealed-columns.ts";
import { secretContext } from "../../../src/central/store/journal/site-secret.ts";
import { chainStart } from "../../../src/core/journal/journal-chain.ts";
import { sha256Of } from "../../../src/core/ids.ts";
import { BackupRig, contentOf, now } from "./rig.ts";

vi.setConfig({ testTimeout: 300_000 }); // Commands are processes.

const siteCount = 1_200;

/** As central leaves it, with a deployment site for each of these secrets. */
async function prepared(rig: BackupRig): Promise<void> {
  await rig.prepare(["a", "b"]);
  const sealer = createSealer(await openKeyFile(join(rig.stateDir, "central.key")));
  await using store = await openStore(join(rig.stateDir, "central.db"), now);
  const customer = await store
    .insertInto("customers")
    .values({ name: "c", created_by_user_id: null, when_created: now().toISOString() })
    .returning("id")
    .executeTakeFirstOrThrow();
  for (let no = 0; no < siteCount; no++) {
    const name16 = no.toString(16).padStart(16, "0");
    await store
      .insertInto("deployment_sites")
      .values({
        customer_id: customer.id,
        created_by_user_id: 1,
        name16,
        secret_sealed: sealer.seal(`secret ${no}`, secretContext(name16)),
        when_created: now().toISOString(),
        when_deleted: null,
        journal_head: 0,
        journal_chain: chainStart,
      })
      .execute();
  }
}

const opened = async (rig: BackupRig, ...keys: readonly Uint8Array[]): Promise<number> => {
  await using store = await openStore(join(rig.stateDir, "central.db"), now);
  const [key, ...before] = keys;
  if (key === undefined) throw new Error("no key");
  return await openAllSealed(store, createSealer(key, ...before));
};

test("a drill proves a backup, and says whose key it needs; nothing is changed by it", async () => {
  using rig = new BackupRig();
  await prepared(rig);
  expect(await rig.run("backup", rig.backup, "--with-key")).toMatchObject({ code: 0 });
  const before = [contentOf(rig.backup), contentOf(rig.stateDir)];
  const drill = await rig.run("restore", rig.backup, "--drill", "--in", rig.dir);
  expect(drill).toMatchObject({ code: 0 });
  expect(drill.said).toContain("can be restored");
  expect(drill.said).toContain(`${siteCount} deployment sites`);
  expect(drill.said).toContain(`${siteCount} secrets open with the key in the backup`);
  expect(drill.said).toContain("records of 2 days");
  expect([contentOf(rig.backup), contentOf(rig.stateDir)]).toEqual(before);
  expect(readdirSync(rig.dir).filter((name) => name.includes("drill"))).toEqual([]);

  // Without the backup's key, that of the settings: missing, another, right.
  rmSync(rig.backup, { recursive: true });
  expect(await rig.run("backup", rig.backup)).toMatchObject({ code: 0 });
  const key = join(rig.stateDir, "central.key");
  const right = readFileSync(key);
  expect(await rig.run("restore", rig.backup, "--drill")).toMatchObject({ code: 0 });
  rmSync(key);
  const missing = await rig.run("restore", rig.backup, "--drill");
  expect([missing.code, missing.said]).toEqual([3, expect.stringContaining("THE KEY IS MISSING")]);
  writeFileSync(key, `${"ab".repeat(32)}\n`);
  const another = await rig.run("restore", rig.backup, "--drill", "--json");
  expect([another.code, another.said]).toEqual([3, expect.stringContaining('"key": "another"')]);
  writeFileSync(key, right);
  for (const wrong of [
    ["--in", rig.dir],
    ["--drill", "--clear-now"],
  ])
    expect(await rig.run("restore", rig.backup, ...wrong)).toMatchObject({ code: 2 });
});

test("a day of logs that is no database any more, though its digest was noted so, is named", async () => {
  using rig = new BackupRig();
  await prepared(rig);
  expect(await rig.run("backup", rig.backup, "--with-key")).toMatchObject({ code: 0 });
  // As if it had been so already when it was copied: the digest is that of the damaged file.
  const day = join(rig.backup, "logs/2030-01-14.db");
  const bytes = readFileSync(day);
  bytes.fill(0x55, 100, 4_000);
  writeFileSync(day, bytes);
  const path = join(rig.backup, "manifest.json");
  const manifest = JSON.parse(readFileSync(path, "utf8")) as {
    files: { path: string; sha256: string }[];
  };
  for (const file of manifest.files)
    if (file.path === "logs/2030-01-14.db") file.sha256 = sha256Of(bytes);
  writeFileSync(path, JSON.stringify(manifest));
  const drill = await rig.run("restore", rig.backup, "--drill", "--in", rig.dir);
  expect([drill.code, drill.said]).toEqual([1, expect.stringContaining("logs/2030-01-14.db: ")]);
  expect(readdirSync(rig.dir).filter((name) => name.includes("drill"))).toEqual([]);
});

test("rekey: every secret under another key; killed on its way it goes on, and a key of another store is refused", async () => {
  using rig = new BackupRig();
  await prepared(rig);
  const keyFile = join(rig.stateDir, "central.key");
  const before = await openKeyFile(keyFile);
  expect(await rig.run("rekey")).toMatchObject({ code: 0 });
  const after = await openKeyFile(keyFile);
  expect(after).not.toEqual(before);
  expect(statSync(keyFile).mode & 0o777).toBe(0o600);
  expect(await opened(rig, after)).toBe(siteCount);

  // Killed at some time: with both keys all of it opens, and the next run ends what this one began.
  let cut = 0;
  for (let round = 0; round < 4; round++) {
    const [newest] = await openKeysOfFile(keyFile);
    await using program = await rig.command("rekey");
    const end = Date.now() + 20_000;
    while (!program.ended && Date.now() < end) {
      const keys = await openKeysOfFile(keyFile);
      if (keys.length > 1) {
        await new Promise((resolve) => setTimeout(resolve, round * 15));
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await program.kill();
    const keys = await openKeysOfFile(keyFile);
    if (keys.length > 1) cut++;
    expect(await opened(rig, ...keys)).toBe(siteCount);
    expect(keys.length === 1 || keys.some((key) => Buffer.compare(key, newest) === 0)).toBe(true);
    expect(await rig.run("rekey")).toMatchObject({ code: 0 });
    const [only, ...more] = await openKeysOfFile(keyFile);
    expect(more).toEqual([]);
    expect(await opened(rig, only)).toBe(siteCount);
  }
  expect(cut).toBeGreaterThan(0);

  const copy = join(rig.dir, "copy.key");
  cpSync(keyFile, copy);
  writeFileSync(keyFile, `${"cd".repeat(32)}\n`);
  const refused = await rig.run("rekey");
  expect([refused.code, refused.said]).toEqual([
    1,
    expect.stringContaining("do not open with the key"),
  ]);
  expect(readFileSync(keyFile, "utf8")).toBe(`${"cd".repeat(32)}\n`);
  cpSync(copy, keyFile);

  // One secret that no key opens: nothing is lost, and the old key is not forgotten.
  const db = openSqlite(join(rig.stateDir, "central.db"), { sync: "full" });
  db.exec(
    "UPDATE deployment_sites SET secret_sealed = 'AAAA' WHERE id = (SELECT max(id) FROM deployment_sites)",
  );
  db.close();
  const broken = await rig.run("rekey");
  expect([broken.code, broken.said]).toEqual([
    1,
    expect.stringContaining("does not open with this key"),
  ]);
  expect(await openKeysOfFile(keyFile)).toHaveLength(2);
});

test("while central runs it is not rekeyed", async () => {
  using rig = new BackupRig();
  await prepared(rig);
  await using central = await rig.command("serve");
  const socket = join(rig.stateDir, "control.sock");
  await vi.waitUntil(() => statSync(socket, { throwIfNoEntry: false }) !== undefined, 60_000);
  expect(central.ended).toBe(false);
  const refused = await rig.run("rekey");
  expect([refused.code, refused.said]).toEqual([1, expect.stringMatching(/another|running|lock/i)]);
});
