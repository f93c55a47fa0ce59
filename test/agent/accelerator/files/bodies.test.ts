// The bytes of blobs beyond one request: small ones from memory with the digest they had, larger ones by descriptors that are the file behind the name.

import { readdirSync, readlinkSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { BlobBodies, OtherBytes } from "../../../../src/agent/accelerator/files/bodies.ts";
import { blobPath } from "../../../../src/core/blob-path.ts";
import { sha256Of, type Sha256 } from "../../../../src/core/ids.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";

function open(memoryMax = 1_000_000) {
  const dir = tempDir();
  const bodies = new BlobBodies({ blobsDir: dir.path, memoryMax });
  const put = (text: string): { readonly sha256: Sha256; readonly size: number } => {
    const sha256 = sha256Of(text);
    mkdirSync(dirname(blobPath(dir.path, sha256)), { recursive: true });
    writeFileSync(blobPath(dir.path, sha256), text);
    return { sha256, size: text.length };
  };
  return {
    bodies,
    put,
    path: (sha256: Sha256): string => blobPath(dir.path, sha256),
    /** How many descriptors of this process lead to files of the directory. */
    descriptors: (): number =>
      readdirSync("/proc/self/fd").filter((fd) => {
        try {
          return readlinkSync(join("/proc/self/fd", fd)).startsWith(dir.path);
        } catch {
          return false; // Closed meanwhile.
        }
      }).length,
    async [Symbol.asyncDispose]() {
      await bodies[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

const text = (bytes: Uint8Array | undefined): string | undefined =>
  bytes && Buffer.from(bytes).toString();

describe("small ones", () => {
  test("are in memory once they were read, whatever the disk does then", async () => {
    await using rig = open();
    const blob = rig.put("hello");
    expect(rig.bodies.held(blob.sha256)).toBe(undefined);
    expect(text(await rig.bodies.read(blob))).toBe("hello");
    writeFileSync(rig.path(blob.sha256), "HELLO");
    expect(text(rig.bodies.held(blob.sha256))).toBe("hello");
    expect(rig.descriptors()).toBe(0);
  });

  test("with other bytes are refused and not kept", async () => {
    await using rig = open();
    const blob = rig.put("hello");
    writeFileSync(rig.path(blob.sha256), "HELLO");
    await expect(rig.bodies.read(blob)).rejects.toThrow(OtherBytes);
    expect(rig.bodies.held(blob.sha256)).toBe(undefined);
    writeFileSync(rig.path(blob.sha256), "hello, world");
    await expect(rig.bodies.read(blob)).rejects.toThrow(`blob ${blob.sha256} is damaged`);
    rmSync(rig.path(blob.sha256));
    await expect(rig.bodies.read(blob)).rejects.toThrow("ENOENT");
    expect(rig.descriptors()).toBe(0);
  });

  test("take no more memory than they may, the longest unused goes first", async () => {
    await using rig = open(3 * (100 + 256));
    const blobs = ["a", "b", "c", "d"].map((letter) => rig.put(letter.repeat(100)));
    for (const blob of blobs.slice(0, 3)) await rig.bodies.read(blob);
    expect(rig.bodies.held(blobs[0]?.sha256 ?? sha256Of(""))).toBeDefined();
    for (const blob of blobs.slice(3)) await rig.bodies.read(blob);
    const held = blobs.map(({ sha256 }) => rig.bodies.held(sha256) !== undefined);
    expect(held).toEqual([true, false, true, true]);
  });
});

describe("middle-sized ones", () => {
  const middle = "m".repeat(200_000);

  test("are kept when they are asked for the second time, as small ones are at once", async () => {
    await using rig = open();
    const [small, blob] = [rig.put("hello"), rig.put(middle)];
    expect([rig.bodies.isToKeep(small), rig.bodies.isToKeep(blob)]).toEqual([true, false]);
    expect(rig.bodies.isToKeep(blob)).toBe(true);
    await rig.bodies.read(blob);
    rmSync(rig.path(blob.sha256));
    expect(text(rig.bodies.held(blob.sha256))).toBe(middle);
  });

  test("are not kept where there is no room for them, and large ones never", async () => {
    await using rig = open(200_000);
    const [blob, large] = [rig.put(middle), rig.put("l".repeat(300_000))];
    for (let n = 0; n < 3; n++)
      expect([rig.bodies.isToKeep(blob), rig.bodies.isToKeep(large)]).toEqual([false, false]);
  });

  test("that are asked for once take the place of none that is asked for again", async () => {
    await using rig = open();
    const blob = rig.put(middle);
    const isToKeep = (no: number): boolean =>
      rig.bodies.isToKeep({ sha256: sha256Of(`${no}`), size: 100_000 });
    for (let no = 0; no < 1_024; no++) expect(isToKeep(no)).toBe(false);
    expect(rig.bodies.isToKeep(blob)).toBe(false); // All before are forgotten.
    expect(isToKeep(5)).toBe(false);
    expect([isToKeep(5), rig.bodies.isToKeep(blob)]).toEqual([true, true]);
  });
});

describe("larger ones", () => {
  test("are opened once for many requests, at the same time and one after another", async () => {
    await using rig = open();
    const blob = rig.put("x".repeat(100_000));
    const first = await rig.bodies.borrow(blob);
    const second = await rig.bodies.borrow(blob);
    expect(second.handle).toBe(first.handle);
    await first[Symbol.asyncDispose]();
    await second[Symbol.asyncDispose]();
    await using third = await rig.bodies.borrow(blob);
    expect(third.handle).toBe(first.handle);
    expect(rig.descriptors()).toBe(1);
  });

  test("are opened anew when the name has another file, and read on by who has the old one", async () => {
    await using rig = open();
    const blob = rig.put("x".repeat(100_000));
    const before = await rig.bodies.borrow(blob);
    writeFileSync(`${rig.path(blob.sha256)}.new`, "y".repeat(100_000));
    renameSync(`${rig.path(blob.sha256)}.new`, rig.path(blob.sha256));
    await using after = await rig.bodies.borrow(blob);
    const read = async ({ handle }: typeof before): Promise<string> =>
      (await handle.read(Buffer.alloc(1), 0, 1, 0)).buffer.toString();
    expect([await read(before), await read(after)]).toEqual(["x", "y"]);
    expect(rig.descriptors()).toBe(2);
    await before[Symbol.asyncDispose]();
    expect(rig.descriptors()).toBe(1);
  });

  test("of another size, or that are gone, are refused", async () => {
    await using rig = open();
    const blob = rig.put("x".repeat(100_000));
    await using _ = await rig.bodies.borrow(blob);
    writeFileSync(rig.path(blob.sha256), "cut");
    await expect(rig.bodies.borrow(blob)).rejects.toThrow("is damaged");
    rmSync(rig.path(blob.sha256));
    await expect(rig.bodies.borrow(blob)).rejects.toThrow("ENOENT");
  });

  test("that two open at once leave one descriptor", async () => {
    await using rig = open();
    const blob = rig.put("x".repeat(100_000));
    const both = await Promise.all([rig.bodies.borrow(blob), rig.bodies.borrow(blob)]);
    for (const one of both) await one[Symbol.asyncDispose]();
    await until("one descriptor", () => rig.descriptors() === 1);
    await using again = await rig.bodies.borrow(blob);
    expect((await again.handle.stat()).size).toBe(100_000);
  });

  test("are at most so many, and none that is in use is closed", async () => {
    await using rig = open();
    const blobs = Array.from({ length: 70 }, (_, no) => rig.put(`${no}`.padEnd(100_000)));
    const used = await rig.bodies.borrow(blobs[0] ?? rig.put(""));
    for (const blob of blobs.slice(1)) await (await rig.bodies.borrow(blob))[Symbol.asyncDispose]();
    await until("64 and the one in use", () => rig.descriptors() === 65);
    expect((await used.handle.stat()).size).toBe(100_000);
    await used[Symbol.asyncDispose]();
    await until("64", () => rig.descriptors() === 64);
  });

  test("that nobody uses for a while are closed", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    try {
      await using rig = open();
      const [idle, used] = [rig.put("x".repeat(100_000)), rig.put("y".repeat(100_000))];
      {
        await using _ = await rig.bodies.borrow(idle);
      }
      await using borrowed = await rig.bodies.borrow(used);
      vi.advanceTimersByTime(15_000);
      await vi.waitFor(() => expect(rig.descriptors()).toBe(1));
      expect((await borrowed.handle.stat()).size).toBe(100_000);
    } finally {
      vi.useRealTimers();
    }
  });
});
