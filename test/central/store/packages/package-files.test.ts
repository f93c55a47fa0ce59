// Files of packages: what a crash left is gone at the next start, what a row names stays.

import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openStore } from "../../../../src/central/store/engine/database.ts";
import { openPackageFiles } from "../../../../src/central/store/packages/package-files.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { sha256Of } from "../../../../src/core/ids.ts";

const now = (): Date => new Date("2031-05-06T07:08:09.010Z");

async function* pieces(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

test("at the start files that no row names go, and what was being received", async () => {
  using dir = tempDir();
  await using store = await openStore(join(dir.path, "central.db"), now);
  const at = join(dir.path, "packages");
  mkdirSync(join(at, "tmp"), { recursive: true });
  for (const name of ["named", "stray", "tmp/half"]) writeFileSync(join(at, name), name);
  await store
    .insertInto("packages")
    .values({
      version: "1.0",
      version_key: "1",
      file: "x-1.0-py3-none-any.whl",
      size: 5,
      sha256: sha256Of(""),
      stored_as: "named",
      uploaded_by_user_id: 1,
      when_created: now().toISOString(),
    })
    .execute();
  await openPackageFiles(at, store);
  expect(new Set(readdirSync(at, { recursive: true, encoding: "utf8" }))).toEqual(
    new Set(["named", "tmp"]),
  );
});

test("a file is kept when it is released, and only then", async () => {
  using dir = tempDir();
  await using store = await openStore(join(dir.path, "central.db"), now);
  const files = await openPackageFiles(dir.path, store);
  const left = (): readonly string[] =>
    readdirSync(dir.path, { recursive: true, encoding: "utf8" }).filter(
      (name) => !name.startsWith("central.db") && name !== "tmp",
    );
  {
    await using staged = await files.stage(pieces("one"), 10).then(taken);
    expect(staged.size).toBe(3);
    await staged.keep();
  }
  expect(left()).toEqual([]);
  const kept = await (async () => {
    await using staged = await files.stage(pieces("one", "two"), 6).then(taken);
    const kept = await staged.keep();
    await store.transaction().execute(async (tx) => staged.release(tx));
    return kept;
  })();
  expect(left()).toEqual([kept.stored_as]);
  const read: Buffer[] = [];
  for await (const chunk of await files.open(kept)) read.push(chunk);
  expect(Buffer.concat(read).toString()).toBe("onetwo");
  expect(await files.stage(pieces("one", "two"), 5)).toBe("too-large");
  const broken = pieces("one");
  broken.next = async () => Promise.reject(new Error("gone"));
  await expect(files.stage(broken, 5)).rejects.toThrow("gone");
  expect(left()).toEqual([kept.stored_as]);
});

function taken<T>(staged: T | "too-large"): T {
  if (staged === "too-large") throw new Error("too large");
  return staged;
}
