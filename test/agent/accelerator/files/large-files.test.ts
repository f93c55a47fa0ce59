// Large files of a viewset: their memory is written over again, and no visitor may ever see another's bytes.

import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Chunks, chunkBytes } from "../../../../src/agent/accelerator/files/chunks.ts";
import { blobPath } from "../../../../src/core/blob-path.ts";
import { sha256Of } from "../../../../src/core/ids.ts";
import { encodeManifestTable } from "../../../../src/core/serving/manifest-table.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { host, openEdge } from "../edge.ts";

/** The last piece of the large ones is written while the system still holds the one before. */
const sizes = [chunkBytes + 1, 3 * chunkBytes, 2 ** 23 + 30_000, 2 ** 24 + 60_000];

/** What one visitor does with what comes. */
type Manner = "at once" | "slowly" | "leaves";
const manners: readonly Manner[] = ["at once", "slowly", "at once", "leaves"];

/** Resolves with the body as far as it came. */
async function take(port: number, path: string, manner: Manner): Promise<Buffer> {
  const socket = connect(port, "127.0.0.1");
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of socket.iterator({ destroyOnReturn: true }) as AsyncIterable<Buffer>) {
    pieces.push(piece);
    bytes += piece.length;
    if (manner === "slowly") await sleep(pieces.length === 1 ? 50 : 1);
    if (manner === "leaves" && bytes > 100_000) break;
  }
  const received = Buffer.concat(pieces);
  return received.subarray(received.indexOf("\r\n\r\n") + 4);
}

test("many visitors at once, fast, slow and gone: each gets the bytes of the file that was asked for", async () => {
  using dir = tempDir();
  const contents = sizes.map((size) => randomBytes(size));
  const entries = contents.map((content, i) => {
    const sha256 = sha256Of(content);
    const blob = blobPath(`${dir.path}/blobs`, sha256);
    mkdirSync(dirname(blob), { recursive: true });
    writeFileSync(blob, content);
    return { path: `${i}.bin`, sha256, size: content.length, mime: "application/octet-stream" };
  });
  await using edge = await openEdge({
    site: {},
    views: { kind: "manifest", table: encodeManifestTable(entries), prefix: "" },
    blobsDir: `${dir.path}/blobs`,
  });
  for (let round = 0; round < 3; round++) {
    const visits = Array.from({ length: 32 }, (_, i) => ({
      content: contents[i % contents.length] ?? Buffer.alloc(0),
      path: `/${i % contents.length}.bin`,
      manner: manners[Math.floor(i / contents.length) % manners.length] ?? "at once",
    }));
    await Promise.all(
      visits.map(async ({ content, path, manner }) => {
        const body = await take(edge.port, path, manner);
        const due = manner === "leaves" ? content.subarray(0, body.length) : content;
        expect(body.equals(due), `${path}, ${manner}`).toBe(true);
      }),
    );
  }
});

test("memory is lent again when it was given back, and only then", () => {
  const chunks = new Chunks();
  const first = chunks.lend();
  const one = first.take(chunkBytes);
  const other = chunks.lend().take(10);
  expect(other.length).toBe(10);
  expect(other.buffer).not.toBe(one.buffer);
  first.giveBack();
  const again = chunks.lend().take(100);
  expect(again.buffer).toBe(one.buffer);
  expect(chunks.lend().take(100).buffer).not.toBe(one.buffer);
});

test("of a burst no more is kept than a little", () => {
  const chunks = new Chunks();
  const burst = Array.from({ length: 200 }, () => chunks.lend());
  const taken = new Set(burst.map((lent) => lent.take(1).buffer));
  for (const lent of burst) lent.giveBack();
  for (const lent of burst) lent.end();
  const again = Array.from({ length: 200 }, () => chunks.lend().take(1).buffer);
  expect(again.filter((memory) => taken.has(memory))).toHaveLength(2 ** 23 / chunkBytes);
});

test("an answer that never tells what has left keeps none of its memory but the newest", () => {
  const chunks = new Chunks();
  const lent = chunks.lend();
  const taken = Array.from({ length: 200 }, () => lent.take(1).buffer);
  lent.giveBack();
  const second = chunks.lend();
  const again = Array.from({ length: 200 }, () => second.take(1).buffer);
  expect(new Set(again.filter((memory) => taken.includes(memory)))).toEqual(
    new Set(taken.slice(-2)),
  );
});

test("pieces grow for a visitor who takes them at once, and shrink for one who does not", () => {
  let nowMs = 0;
  const lent = new Chunks().lend(() => nowMs);
  const pass = (tookMs: number): number => {
    lent.take(lent.bytes);
    nowMs += tookMs;
    lent.giveBack();
    return lent.bytes / chunkBytes;
  };
  expect([1, 19, 1, 1].map(pass)).toEqual([2, 4, 8, 8]);
  expect([20, 80].map(pass)).toEqual([8, 8]);
  expect([81, 500, 500, 500].map(pass)).toEqual([4, 2, 1, 1]);
});

test("pieces are small while very many answers are on their way", () => {
  const chunks = new Chunks();
  const lent = Array.from({ length: 257 }, () => chunks.lend());
  const [first] = lent;
  expect(first?.bytes).toBe(16 * 1024);
  expect(first?.take(100).buffer.byteLength).toBe(100);
  first?.end();
  first?.end();
  expect(lent[1]?.bytes).toBe(chunkBytes);
});
