// Sealed secrets: open only with their key, in their place, unchanged.

import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createSealer, openKeyFile, openKeysOfFile } from "../../src/base/seal.ts";
import { AccelError } from "../../src/core/faults.ts";
import { tempDir } from "../support/temp-dir.ts";

/** Lone surrogates included: they come back as U+FFFD, as everywhere in UTF-8. */
const anyText = fc.string({
  unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
});
const sealer = createSealer(Buffer.alloc(32, 1));

function opens(sealed: string, context: string, by = sealer): boolean {
  try {
    by.open(sealed, context);
    return true;
  } catch (error) {
    if (error instanceof AccelError && error.code === "SEAL_BROKEN") return false;
    throw error;
  }
}

test("property: what was sealed opens, in its context alone", () => {
  fc.assert(
    fc.property(anyText, fc.string(), fc.string(), (plain, context, other) => {
      const sealed = sealer.seal(plain, context);
      expect(sealer.open(sealed, context)).toBe(plain.toWellFormed());
      expect(opens(sealed, other)).toBe(other === context);
    }),
  );
});

test("another key does not open it, and the error tells neither secret nor key", () => {
  const sealed = sealer.seal("canary", "user/1/token");
  const other = createSealer(Buffer.alloc(32, 2));
  expect(opens(sealed, "user/1/token", other)).toBe(false);
  expect(() => other.open(sealed, "user/1/token")).toThrow(
    /^a sealed secret \(user\/1\/token\) does not open with this key$/,
  );
});

test("every changed byte and every shortening is noticed", () => {
  for (const plain of ["secret", ""]) {
    const sealed = Buffer.from(sealer.seal(plain, "c"), "base64url");
    for (let i = 0; i < sealed.length; i++) {
      const changed = Buffer.from(sealed);
      changed[i] = (changed[i] ?? 0) ^ 1;
      expect(opens(changed.toString("base64url"), "c")).toBe(false);
      expect(opens(sealed.subarray(0, i).toString("base64url"), "c")).toBe(false);
    }
  }
  expect(opens("", "c")).toBe(false);
  expect(opens("not base64 at all: ü", "c")).toBe(false);
});

test("equal secrets are sealed differently", () => {
  expect(sealer.seal("same", "c")).not.toBe(sealer.seal("same", "c"));
});

test("the key file is made once, for its owner only, and read again", async () => {
  using dir = tempDir();
  const path = join(dir.path, "key");
  const key = await openKeyFile(path);
  expect(key.length).toBe(32);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readFileSync(path, "utf8")).toBe(`${Buffer.from(key).toString("hex")}\n`);
  expect(await openKeyFile(path)).toEqual(key);
  expect(opens(createSealer(key).seal("x", "c"), "c", createSealer(await openKeyFile(path)))).toBe(
    true,
  );
});

test("while a store is brought to another key, the file has two: the first seals, both open", async () => {
  using dir = tempDir();
  const path = join(dir.path, "key");
  writeFileSync(path, `${"0a".repeat(32)}\n${"0b".repeat(32)}\n`);
  const [first, second] = [Buffer.alloc(32, 10), Buffer.alloc(32, 11)];
  expect((await openKeysOfFile(path)).map((key) => Buffer.from(key))).toEqual([first, second]);
  const both = createSealer(first, second);
  expect(both.open(createSealer(second).seal("x", "c"), "c")).toBe("x");
  expect(createSealer(first).open(both.seal("y", "c"), "c")).toBe("y");
  expect(() => both.open(createSealer(Buffer.alloc(32, 12)).seal("z", "c"), "c")).toThrow(
    expect.objectContaining({ code: "SEAL_BROKEN" }),
  );
});

test.each(["", "abc", `${"a".repeat(64)}\nabc`, "G".repeat(64), "A".repeat(64), "a".repeat(63)])(
  "a key file with %j is refused and kept",
  async (content) => {
    using dir = tempDir();
    const path = join(dir.path, "key");
    writeFileSync(path, content);
    await expect(openKeyFile(path)).rejects.toMatchObject({ code: "FILE_UNUSABLE" });
    expect(readFileSync(path, "utf8")).toBe(content);
  },
);

test("a key file that cannot be read is not replaced", async () => {
  using dir = tempDir();
  await expect(openKeyFile(dir.path)).rejects.toMatchObject({ code: "FILE_UNUSABLE" });
});
