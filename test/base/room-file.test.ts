// Room that is kept for who must be able to write on a full disk.

import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inRoomOf, RoomFile } from "../../src/base/room-file.ts";
import { tempDir } from "../support/temp-dir.ts";

const mib = 2 ** 20;

class Full extends Error {
  readonly code = "SQLITE_FULL";
}

test("the room is of blocks, is given back in pieces, and is taken again a minute later", () => {
  using dir = tempDir();
  const path = join(dir.path, "room");
  const room = new RoomFile(path, 2 * mib);
  room.take(0);
  const { size, blocks } = statSync(path);
  expect([size, blocks * 512 >= 2 * mib]).toEqual([2 * mib, true]);
  expect([room.give(), statSync(path).size]).toEqual([true, mib]);
  expect([room.give(), room.give()]).toEqual([true, false]);
  expect(statSync(path, { throwIfNoEntry: false })).toBeUndefined();
  room.take(59_000);
  expect(room.give()).toBe(false);
  room.take(60_000);
  expect(statSync(path).size).toBe(2 * mib);
});

test("what fails on a full disk is run again in the room; what fails otherwise is not", () => {
  using dir = tempDir();
  const room = new RoomFile(join(dir.path, "room"), 3 * mib);
  room.take();
  let tries = 0;
  const result = inRoomOf(room, () => {
    if (++tries < 3) throw new Full("database or disk is full");
    return tries;
  });
  expect(result).toBe(3);
  tries = 0;
  const always = (error: Error): (() => never) => {
    return () => {
      tries++;
      throw error;
    };
  };
  expect(() => inRoomOf(room, always(new Error("other")))).toThrow("other");
  expect(tries).toBe(1);
  expect(() => inRoomOf(room, always(new Full("full")))).toThrow("full");
  expect(tries).toBe(3);
});

test("where little is free, or the directory is gone, no room is taken and nothing is thrown", () => {
  using dir = tempDir();
  new RoomFile(join(dir.path, "missing/room"), mib).take();
  const path = join(dir.path, "room");
  new RoomFile(path, 2 ** 50).take();
  expect(statSync(path, { throwIfNoEntry: false })).toBeUndefined();
});
