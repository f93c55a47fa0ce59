// The file of symmetric keys: what is missing is none, what is damaged is set aside, and what cannot be read is neither.

import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readKeys, writeKeys, type KeptKey } from "../../../src/agent/vault/key-file.ts";
import { tempDir } from "../../support/temp-dir.ts";

const keys: readonly KeptKey[] = [
  { name: "old", version: 1, sealed: "s1", isCurrent: false, key: new Uint8Array(32).fill(7) },
  { name: "new", version: 2, sealed: "s2", isCurrent: true, key: undefined },
];

test("keys are read as they were written, for this account alone", async () => {
  using dir = tempDir();
  const path = join(dir.path, "keys.json");
  expect(await readKeys(path)).toEqual([]);
  await writeKeys(path, keys);
  expect(await readKeys(path)).toEqual(keys);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("a file that cannot be read is not taken for none: the keys in it would be lost", async () => {
  using dir = tempDir();
  const path = join(dir.path, "keys.json");
  mkdirSync(path);
  await expect(readKeys(path)).rejects.toMatchObject({ code: "EISDIR" });
  await expect(readKeys(join(path, "\0"))).rejects.toMatchObject({ code: "ERR_INVALID_ARG_VALUE" });
});

const row = { name: "k", version: 1, sealed: "s", is_current: true, key: "0".repeat(64) };
test.each([
  ["no JSON", "{"],
  ["another format", JSON.stringify({ format: 2, keys: [] })],
  ["no list", JSON.stringify({ format: 1, keys: {} })],
  ["null", "null"],
  ...Object.entries({
    name: 1,
    version: "1",
    sealed: null,
    is_current: 1,
    key: "0".repeat(63),
  }).map(([field, value]) => [
    `a wrong ${field}`,
    JSON.stringify({ format: 1, keys: [row, { ...row, [field]: value }] }),
  ]),
])("a damaged file is set aside whole: %s", async (_what, text) => {
  using dir = tempDir();
  const path = join(dir.path, "keys.json");
  writeFileSync(path, text ?? "");
  expect(await readKeys(path)).toEqual([]);
  expect(existsSync(path)).toBe(false);
  expect(readFileSync(`${path}.corrupt`, "utf8")).toBe(text);
});
