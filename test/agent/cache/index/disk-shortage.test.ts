// A disk that others fill as well: the cache may use less than disk_max, gives up what it has beyond that, and index.db gets shorter.

import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite } from "../../../../src/base/sqlite.ts";
import { DiskRoom } from "../../../../src/agent/cache/index/disk-room.ts";
import type { DiskSpace } from "../../../../src/base/disk-space.ts";
import { DiskShortage } from "../../../../src/agent/cache/index/disk-shortage.ts";
import { SharedHeader } from "../../../../src/agent/cache/index/shared-header.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { keyOf, metaOf } from "../rig.ts";
import { openIndexIn } from "../still-index.ts";

const mib = 2 ** 20;
const gib = 2 ** 30;

/** What is withheld and what is lacking of a cache of 10 GiB that holds 4. */
function looked(space: DiskSpace | undefined, freeMin?: number, spare = 0): readonly number[] {
  const header = new SharedHeader(SharedHeader.allocate());
  header.storedBytes = 4 * gib;
  const directory = "/nowhere";
  const options = { header, directory, diskMax: 10 * gib, freeMin };
  const shortage = new DiskShortage({ ...options, space: () => space });
  shortage.look(spare);
  return [header.withheldBytes, shortage.lacking].map((bytes) => bytes / mib);
}

test("the cache may use what is free beyond what it leaves free, and what it has", () => {
  expect(looked({ free: 100 * gib, size: 200 * gib })).toEqual([0, 0]);
  expect(looked({ free: 6 * gib + 512 * mib, size: 200 * gib })).toEqual([0, 0]);
  expect(looked({ free: 6 * gib, size: 200 * gib })).toEqual([512, 0]);
  expect(looked({ free: 512 * mib, size: 200 * gib })).toEqual([6 * 1_024, 0]);
  expect(looked({ free: 0, size: 200 * gib })).toEqual([6 * 1_024 + 512, 512]);
  expect(looked({ free: 0, size: 200 * gib }, 20 * gib)).toEqual([10 * 1_024, 20 * 1_024]);
  // On a small disk it is a tenth, unless the settings say more.
  expect(looked({ free: 6 * gib, size: gib })).toEqual([102.4, 0].map((n) => expect.closeTo(n, 3)));
  expect(looked({ free: 0, size: gib }, 0)).toEqual([6 * 1_024, 0]);
  // What index.db holds free is the cache's, though not the disk's.
  expect(looked({ free: 512 * mib, size: 200 * gib }, undefined, gib)).toEqual([5 * 1_024, 0]);
  expect(looked(undefined)).toEqual([0, 0]);
});

test("bodies on their way in find room only in what may be used", () => {
  const header = new SharedHeader(SharedHeader.allocate());
  const room = new DiskRoom(header, DiskRoom.allocateShare(), 64 * mib);
  expect(room.objectBytesMax).toBe(8 * mib);
  expect(room.take(8 * mib)).toBe(true);
  room.give(8 * mib);
  header.withheldBytes = 48 * mib;
  expect(room.objectBytesMax).toBe(2 * mib);
  expect([room.take(8 * mib), room.take(4 * mib)]).toEqual([false, true]);
  header.withheldBytes = 64 * mib;
  expect([room.take(1), room.isShort]).toEqual([false, true]);
});

test("what is beyond goes, the longest unused first, and index.db gets shorter by it", async () => {
  using dir = tempDir();
  let lacking = 0;
  await using opened = await openIndexIn(dir.path, { lacking: () => lacking });
  const { index, header } = opened;
  const body = Buffer.alloc(20_000, 7);
  for (let no = 0; no < 1_000; no++)
    index.write([
      {
        kind: "commit",
        candidate: {
          key: keyOf({ query: `x=${no}` }),
          meta: metaOf({ sourceNo: index.clears.newest }),
          body: { kind: "inline", bytes: body },
          size: body.length,
          invalidationMark: null,
        },
      },
    ]);
  const settle = (): void => {
    while (index.step());
  };
  settle();
  const file = (): number => {
    const other = openSqlite(join(dir.path, "index.db"), { sync: "normal" });
    other.pragma("wal_checkpoint(PASSIVE)");
    other.close();
    return statSync(join(dir.path, "index.db")).size;
  };
  const before = { stored: header.storedBytes, file: file() };
  expect(before.stored).toBeGreaterThan(20 * mib);
  // Half of it may stay. The pages that held the rest are kept while nothing is lacking.
  header.withheldBytes = gib - before.stored / 2;
  settle();
  expect(header.storedBytes).toBeLessThan(before.stored / 2);
  expect(header.storedBytes).toBeGreaterThan(before.stored / 3);
  expect(file()).toBe(before.file);
  expect(index.spareBytes).toBeGreaterThan(before.stored / 3);
  lacking = 5 * mib;
  settle();
  expect(index.spareBytes).toBe(0);
  expect(file()).toBeLessThan(before.file * 0.65);
  expect(index.entries.count).toBeGreaterThan(300);
});
