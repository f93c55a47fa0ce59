// The file of the index: when it counts as closed, and where it goes when it is damaged.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  indexPath,
  markClean,
  markHandedOver,
  openIndexFile,
  readState,
  type IndexExpectation,
} from "../../../../src/agent/cache/index/index-file.ts";
import { tempDir } from "../../../support/temp-dir.ts";

const expectation = (
  bootId: string | undefined,
  opening: string,
  before: string | null = null,
): IndexExpectation => ({
  facts: { epoch: null, clearSeq: 0, clearNo: 0, opening: before },
  opening,
  nowS: 1_900_000_000,
  bootId,
  clearNo: 0,
  lastId: 0,
});

test("it counts as closed from then on until it is opened again, and tells in which boot that was", async () => {
  using dir = tempDir();
  const first = await openIndexFile(dir.path, expectation("boot 1", "a"), undefined);
  expect(readState(first.db)).toMatchObject({ clean: 0, boot_id: "boot 1" });
  expect(first).toMatchObject({ dropped: undefined, isUnchecked: false });
  markClean(first.db);
  expect(readState(first.db)).toMatchObject({ clean: 1, boot_id: "boot 1" });
  first.db.close();
  const second = await openIndexFile(dir.path, expectation("boot 2", "b", "a"), undefined);
  expect(readState(second.db)).toMatchObject({ clean: 0, boot_id: "boot 2" });
  expect(second).toMatchObject({ dropped: undefined, isUnchecked: false });
  second.db.close();
  const third = await openIndexFile(dir.path, expectation(undefined, "c", "b"), undefined);
  expect(readState(third.db)).toMatchObject({ clean: 0, boot_id: "unknown" });
  expect(third).toMatchObject({ dropped: undefined, isUnchecked: true });
  third.db.close();
});

test("one that was handed over counts as closed in the same boot, and as not closed in another", async () => {
  using dir = tempDir();
  const opened = async (bootId: string, opening: string, before: string | null) => {
    const { db, isUnchecked } = await openIndexFile(
      dir.path,
      expectation(bootId, opening, before),
      undefined,
    );
    return { db, isUnchecked };
  };
  const first = await opened("boot 1", "a", null);
  markHandedOver(first.db);
  first.db.close();
  const second = await opened("boot 1", "b", "a");
  expect(second.isUnchecked).toBe(false);
  // Opened, and not closed.
  second.db.close();
  const third = await opened("boot 1", "c", "b");
  expect(third.isUnchecked).toBe(true);
  markHandedOver(third.db);
  third.db.close();
  const fourth = await opened("boot 2", "d", "c");
  expect(fourth.isUnchecked).toBe(true);
  fourth.db.close();
});

test("a damaged one is set aside under the next number, and of those the newest is kept", async () => {
  using dir = tempDir();
  const noiseOf = (no: number): string => `noise ${no} `.repeat(10_000);
  for (const no of [1, 2, 3]) {
    writeFileSync(indexPath(dir.path), noiseOf(no));
    const { db, dropped } = await openIndexFile(dir.path, expectation("boot", "a"), undefined);
    db.close();
    expect(dropped).toContain("index.db is damaged");
    const aside = readdirSync(dir.path).filter((name) => name.includes("corrupt"));
    expect(aside).toEqual([`index.db.corrupt-${no}`]);
    expect(readFileSync(join(dir.path, aside[0] ?? ""), "utf8")).toBe(noiseOf(no));
  }
});

test("one that is out of date is not set aside", async () => {
  using dir = tempDir();
  const first = await openIndexFile(dir.path, expectation("boot", "a"), undefined);
  first.db.close();
  const other = await openIndexFile(dir.path, expectation("boot", "c", "another"), undefined);
  other.db.close();
  expect(other.dropped).toContain("older copy");
  expect(readdirSync(dir.path).filter((name) => name.includes("corrupt"))).toEqual([]);
});
