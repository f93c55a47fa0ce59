// Blobs over the wire: whole, from an offset, broken off, sent from memory and from files that change.

import { randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { constants, zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import type { Sha256 } from "../../../src/core/ids.ts";
import { FakeCentral } from "../../support/fake-central.ts";
import { clientOf, never, scripted, sha256 } from "../../support/scripted-central.ts";
import { tempDir } from "../../support/temp-dir.ts";

test("blobs come whole and from an offset, and break off with a name", async () => {
  await using central = await FakeCentral.start();
  await using client = clientOf(central.url);
  const bytes = randomBytes(300_000);
  central.blobs.set(sha256(bytes), bytes);
  const whole = await client.getBlob(sha256(bytes), 0, never);
  expect(whole).toMatchObject({ from: 0, size: 300_000 });
  expect(await buffer(whole.chunks)).toEqual(bytes);
  const rest = await client.getBlob(sha256(bytes), 299_990, never);
  expect(rest).toMatchObject({ from: 299_990, size: 300_000 });
  expect(await buffer(rest.chunks)).toEqual(bytes.subarray(299_990));
  await expect(client.getBlob(sha256(randomBytes(1)), 0, never)).rejects.toMatchObject({
    code: "NOT_FOUND",
  });
  central.faults.cut = true;
  const torn = await client.getBlob(sha256(bytes), 0, never);
  await expect(buffer(torn.chunks)).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
});

test("a server without ranges says so by beginning at 0; one with other ranges is refused", async () => {
  await using script = await scripted((request, response) => {
    if (request.url?.endsWith("0")) response.end("whole");
    else response.writeHead(206, { "content-range": "bytes 1-4/5" }).end("hole");
  });
  const all = await script.client.getBlob("0".repeat(64) as Sha256, 3, never);
  expect(all.from).toBe(0);
  expect(String(await buffer(all.chunks))).toBe("whole");
  await expect(script.client.getBlob("1".repeat(64) as Sha256, 3, never)).rejects.toMatchObject({
    code: "MESSAGE_INVALID",
  });
});

test("text comes compressed where it is asked for from its first byte, and is itself again", async () => {
  const text = Buffer.alloc(100_000, "all work and no play ");
  const asked: (string | undefined)[] = [];
  await using script = await scripted((request, response) => {
    asked.push(request.headers["accept-encoding"]);
    if (request.headers["accept-encoding"] !== "zstd") {
      response.writeHead(206, { "content-range": "bytes 1-99999/100000" }).end("x");
      return;
    }
    const head = { "content-encoding": "zstd", "accel-blob-size": text.length };
    const coded = zstdCompressSync(text);
    response.writeHead(200, head).write(coded.subarray(0, 10));
    response.end(coded.subarray(10));
  });
  const digest = "0".repeat(64) as Sha256;
  const whole = await script.client.getBlob(digest, 0, never, true);
  expect(whole).toMatchObject({ from: 0, size: 100_000 });
  expect((await buffer(whole.chunks)).equals(text)).toBe(true);
  (await script.client.getBlob(digest, 1, never, true)).cancel();
  expect(asked).toEqual(["zstd", "identity"]);
});

test.each([
  ["is cut off", (coded: Buffer) => coded.subarray(0, 20), "CENTRAL_UNREACHABLE"],
  ["is noise", (coded: Buffer) => Buffer.alloc(coded.length, 7), "CENTRAL_UNREACHABLE"],
])("a compressed body that %s is one that broke off", async (_, spoil, code) => {
  await using script = await scripted((_request, response) => {
    const head = { "content-encoding": "zstd", "accel-blob-size": 1_000_000 };
    response.writeHead(200, head).end(spoil(zstdCompressSync(Buffer.alloc(1_000_000, "text "))));
  });
  const stream = await script.client.getBlob("0".repeat(64) as Sha256, 0, never, true);
  await expect(buffer(stream.chunks)).rejects.toMatchObject({ code });
});

test("what would need a window beyond ours is not decoded, and what inflates comes in pieces that can be left", async () => {
  const params = { [constants.ZSTD_c_windowLog]: 27, [constants.ZSTD_c_contentSizeFlag]: 0 };
  const wide = zstdCompressSync(Buffer.alloc(200 * 2 ** 20), { params });
  await using script = await scripted((_request, response) => {
    response.writeHead(200, { "content-encoding": "zstd", "accel-blob-size": 10 }).end(wide);
  });
  expect(wide.length).toBeLessThan(100_000);
  const stream = await script.client.getBlob("0".repeat(64) as Sha256, 0, never, true);
  await expect(buffer(stream.chunks)).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
  expect(stream.size).toBe(10);
});

test("a coding that nobody asked for is refused", async () => {
  await using script = await scripted((_request, response) => {
    response.writeHead(200, { "content-encoding": "br" }).end("x");
  });
  const asked = script.client.getBlob("0".repeat(64) as Sha256, 0, never, true);
  await expect(asked).rejects.toMatchObject({ code: "MESSAGE_INVALID" });
});

test("uploads: from memory, an empty file, a file that is gone, one that has shrunk", async () => {
  using dir = tempDir();
  await using central = await FakeCentral.start();
  await using client = clientOf(central.url);
  const path = join(dir.path, "file");
  await client.putBlob(sha256(Buffer.from("x")), Buffer.from("x"), never);
  writeFileSync(path, "");
  await client.putBlob(sha256(Buffer.alloc(0)), { path, size: 0 }, never);
  expect(central.blobs.size).toBe(2);
  writeFileSync(path, "short");
  const digest = sha256(randomBytes(8));
  await expect(client.putBlob(digest, { path, size: 500 }, never)).rejects.toMatchObject({
    code: "CONFLICT",
  });
  rmSync(path);
  await expect(client.putBlob(digest, { path, size: 5 }, never)).rejects.toMatchObject({
    code: "ENOENT",
  });
});

test("which blobs central lacks, in questions of at most 10,000", async () => {
  await using central = await FakeCentral.start();
  await using client = clientOf(central.url);
  const all = Array.from({ length: 20_001 }, (_, i) => sha256(Buffer.from(String(i))));
  for (const digest of all.slice(1)) central.blobs.set(digest, Buffer.alloc(0));
  expect(await client.blobsMissing(all, never)).toEqual(all.slice(0, 1));
  expect(central.requests.filter((line) => line.includes("missing")).length).toBe(3);
});

test("a download that is not wanted after all can be left; one that breaks with nobody reading harms nothing", async () => {
  let breakOff = (): void => undefined;
  await using script = await scripted((_request, response) => {
    response.writeHead(200, { "content-length": 1_000 }).write("x");
    breakOff = () => response.destroy();
  });
  const left = await script.client.getBlob("0".repeat(64) as Sha256, 0, never);
  left.cancel();
  await expect(buffer(left.chunks)).rejects.toThrow();
  const forgotten = await script.client.getBlob("1".repeat(64) as Sha256, 0, never);
  breakOff();
  // Another call over the same pool goes on to the end.
  const other = script.client.getBlob("2".repeat(64) as Sha256, 0, never);
  (await other).cancel();
  await expect(buffer(forgotten.chunks)).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
});
