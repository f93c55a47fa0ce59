// agent.db on a real small disk without a free byte: it opens all the same, and what it takes is durable, start after start.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openAgentDb } from "../../../src/agent/link/agent-db.ts";
import { canMountDisks, SmallDisk } from "../../support/small-disk.ts";
import { tempDir } from "../../support/temp-dir.ts";

/** Blocks that are smaller than a page of `-shm` would end the process at a write into a hole of that file. */
const blocks = [4_096, 1_024];

test.skipIf(!canMountDisks).each(blocks)(
  "ten starts on a disk that is full each time, each after a clean end; blocks of %i bytes",
  (blockBytes) => {
    using dir = tempDir();
    using disk = new SmallDisk("64M", { blockBytes });
    disk.mount(join(dir.path, "state"));
    const path = join(disk.at, "agent.db");
    {
      using db = openAgentDb(path);
      db.put({ start: 0, large: "x".repeat(100_000) });
      expect(db.alone).toBeUndefined();
      expect(db.image()).toBeUndefined();
    }
    for (let start = 1; start <= 10; start++) {
      disk.fill("for nobody");
      using db = openAgentDb(path);
      expect(db.alone).toMatch(/disk/);
      expect(db.get("start")).toBe(start - 1);
      disk.fill("for nobody");
      db.put({ start });
      disk.fill("for nobody");
    }
    disk.clean();
    using db = openAgentDb(path);
    expect([db.alone, db.get("start")]).toEqual([undefined, 10]);
  },
);

test.skipIf(!canMountDisks)("starts on a disk that takes no more files, after clean ends", () => {
  using dir = tempDir();
  using disk = new SmallDisk("64M", { files: 256 });
  disk.mount(join(dir.path, "state"));
  const path = join(disk.at, "agent.db");
  openAgentDb(path)[Symbol.dispose]();
  for (let start = 0; start <= 3; start++) {
    disk.fillNames();
    using db = openAgentDb(path);
    expect([db.alone === undefined, db.get("start")]).toEqual([
      false,
      start === 0 ? undefined : start - 1,
    ]);
    db.put({ start });
  }
});

test.skipIf(!canMountDisks)("a young file takes a thousand commits on a full disk", () => {
  using dir = tempDir();
  using disk = new SmallDisk("64M");
  disk.mount(join(dir.path, "state"));
  using db = openAgentDb(join(disk.at, "agent.db"));
  rmSync(join(disk.at, "agent.db.room")); // Others would be faster.
  disk.fill("for nobody");
  for (let no = 1; no <= 1_000; no++) {
    db.put({ [`entry:${no}`]: no });
    if (no % 50 === 0) disk.fill("for nobody");
  }
  expect(db.get("entry:1000")).toBe(1_000);
});
