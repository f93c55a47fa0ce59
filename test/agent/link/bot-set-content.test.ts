// A whole bot set over a line that breaks: it goes on where it was, over restarts too, and nothing is believed before its digest is right.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BotSetContents } from "../../../src/agent/link/bot-set-content.ts";
import { AccelError } from "../../../src/core/faults.ts";
import { parseSha256, type Sha256 } from "../../../src/core/ids.ts";
import type { SetElement } from "../../../src/core/addresses/set-digest.ts";
import { tempDir } from "../../support/temp-dir.ts";

const never = new AbortController().signal;
const elements = Array.from({ length: 5_000 }, (_, i): SetElement => ({
  bot: i % 3 === 0 ? "Bötchen 🤖" : "plain",
  range: `10.${i >> 8}.${i & 255}.0/24`,
}));
const content = Buffer.from(elements.map((element) => `${JSON.stringify(element)}\n`).join(""));
const blob = sha256Of(content);

function sha256Of(bytes: Uint8Array): Sha256 {
  const sha256 = parseSha256(createHash("sha256").update(bytes).digest("hex"));
  if (sha256 === undefined) throw new Error("no digest");
  return sha256;
}

/** Central's blobs: each transfer ends after `pieces` chunks of 1,000 bytes. */
class Line {
  readonly asked: number[] = [];
  pieces = Infinity;
  sent = content;
  ranges = true;

  getBlob = async (_: Sha256, rangeFrom: number) => {
    this.asked.push(rangeFrom);
    if (rangeFrom >= this.sent.length) throw new AccelError("CENTRAL_REFUSED", "416");
    const from = this.ranges ? rangeFrom : 0;
    const { sent, pieces } = this;
    return {
      from,
      size: sent.length,
      cancel: () => undefined,
      chunks: (async function* () {
        for (let no = 0; from + no * 1_000 < sent.length; no++) {
          if (no === pieces) throw new AccelError("CENTRAL_UNREACHABLE", "broken");
          yield sent.subarray(from + no * 1_000, from + (no + 1) * 1_000);
        }
      })(),
    };
  };
}

async function read(line: Line, dir: string): Promise<readonly SetElement[]> {
  const contents = new BotSetContents(line, dir, () => new Date());
  return (await Array.fromAsync(contents.read(blob, never))).flat();
}

test("a set arrives in pieces and leaves nothing behind", async () => {
  using dir = tempDir();
  expect(await read(new Line(), dir.path)).toEqual(elements);
  expect(readdirSync(dir.path)).toEqual([]);
});

test("a line that breaks again and again gets it whole, as long as it gets on", async () => {
  using dir = tempDir();
  const line = new Line();
  line.pieces = 10;
  expect(await read(line, dir.path)).toEqual(elements);
  expect(line.asked).toEqual(
    Array.from({ length: Math.ceil(content.length / 10_000) }, (_, i) => i * 10_000),
  );
});

test("after a line that is dead the next start goes on from there", async () => {
  using dir = tempDir();
  const line = new Line();
  line.pieces = 10;
  const dies = line.getBlob;
  line.getBlob = async (...args) => {
    if (line.asked.length === 3) throw new AccelError("CENTRAL_UNREACHABLE", "dead");
    return dies(...args);
  };
  await expect(read(line, dir.path)).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
  const next = new Line();
  expect(await read(next, dir.path)).toEqual(elements);
  expect(next.asked).toEqual([30_000]);
});

test("what is there whole is not fetched again; what is there wrong is", async () => {
  using dir = tempDir();
  const path = join(dir.path, `${blob}.0.part`);
  const line = new Line();
  writeFileSync(path, content);
  expect(await read(line, dir.path)).toEqual(elements);
  expect(line.asked).toEqual([]);
  // As long, but not the same: a power loss.
  writeFileSync(path, Buffer.alloc(content.length));
  await expect(read(line, dir.path)).rejects.toThrow("416");
  expect(await read(line, dir.path)).toEqual(elements);
  writeFileSync(path, Buffer.alloc(500));
  await expect(read(line, dir.path)).rejects.toMatchObject({ code: "BLOB_MISMATCH" });
  expect(await read(line, dir.path)).toEqual(elements);
});

test("a central without ranges sends it from its first byte", async () => {
  using dir = tempDir();
  writeFileSync(join(dir.path, `${blob}.0.part`), content.subarray(0, 700));
  const line = new Line();
  line.ranges = false;
  expect(await read(line, dir.path)).toEqual(elements);
});

test("another content than asked for is never given out", async () => {
  using dir = tempDir();
  const line = new Line();
  line.sent = Buffer.from(content).fill("x", 100, 101);
  await expect(read(line, dir.path)).rejects.toMatchObject({ code: "BLOB_MISMATCH" });
});

test.each<[string, (line: Line) => void]>([
  ["of what central will not continue", (line) => (line.sent = content.subarray(0, 0))],
  ["of another content", (line) => (line.sent = Buffer.from(content).fill("x", 100, 101))],
  [
    "before it comes from its first byte again",
    (line) => {
      line.ranges = false;
      line.pieces = 10;
    },
  ],
])("a file that cannot be emptied %s is told, and nothing of it is given out", async (_, spoil) => {
  using dir = tempDir();
  // Takes all that is written, and refuses to be truncated.
  symlinkSync("/dev/null", join(dir.path, `${blob}.0.part`));
  const line = new Line();
  spoil(line);
  // Of a time before that file's, or it would be removed as an old one.
  const contents = new BotSetContents(line, dir.path, () => new Date(0));
  await expect(Array.fromAsync(contents.read(blob, never))).rejects.toMatchObject({
    code: "EINVAL",
    syscall: "ftruncate",
  });
});

test("a part of before that cannot be removed is told, and nothing is asked for", async () => {
  using dir = tempDir();
  const old = join(dir.path, `${"0".repeat(64)}.0.part`);
  mkdirSync(old);
  utimesSync(old, 0, 0);
  const line = new Line();
  await expect(read(line, dir.path)).rejects.toMatchObject({ code: "ERR_FS_EISDIR" });
  expect(line.asked).toEqual([]);
  rmSync(old, { recursive: true });
  expect(await read(line, dir.path)).toEqual(elements);
});

test("a file that goes while it is read is read to its end", async () => {
  using dir = tempDir();
  const contents = new BotSetContents(new Line(), dir.path, () => new Date());
  const got: SetElement[] = [];
  for await (const some of contents.read(blob, never)) {
    rmSync(join(dir.path, `${blob}.0.part`), { force: true });
    got.push(...some);
  }
  expect(got).toEqual(elements);
});

test("lines that are no elements are refused", async () => {
  using dir = tempDir();
  for (const text of ["nonsense\n", '{"bot":"x"}\n', "x".repeat(10_000)]) {
    const bytes = Buffer.from(text);
    const line = new Line();
    line.sent = bytes;
    const contents = new BotSetContents(line, dir.path, () => new Date());
    await expect(Array.fromAsync(contents.read(sha256Of(bytes), never))).rejects.toMatchObject({
      code: "MESSAGE_INVALID",
    });
  }
});

test("two hosts with the same set do not meet in one file; what nobody asked for goes", async () => {
  using dir = tempDir();
  const old = join(dir.path, `${"0".repeat(64)}.0.part`);
  writeFileSync(old, "x");
  utimesSync(old, 0, 0);
  const contents = new BotSetContents(new Line(), dir.path, () => new Date());
  const both = await Promise.all(
    [0, 1].map(async () => (await Array.fromAsync(contents.read(blob, never))).flat()),
  );
  expect(both).toEqual([elements, elements]);
  expect(readdirSync(dir.path)).toEqual([]);
});
