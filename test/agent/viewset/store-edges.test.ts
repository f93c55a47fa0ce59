// The edges of the blob store: what cannot be read is no blob that is missing, and parts are counted as they lie there.

import { execFileSync } from "node:child_process";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openBlobStore } from "../../../src/agent/viewset/blob-store.ts";
import { blobPath } from "../../../src/core/blob-path.ts";
import { blobBytesMax } from "../../../src/wire/manifest.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { digest, FakeCentral } from "./fake-central.ts";

const never = new AbortController().signal;

/** Root can read all: where the tests run as root, this process is nobody for the while, and the directory nobody's. */
function asNobody(dir: string): Disposable {
  if (process.geteuid?.() !== 0) return { [Symbol.dispose]: () => undefined };
  const nobody = 65_534;
  execFileSync("chown", ["-R", String(nobody), dir]);
  process.seteuid?.(nobody);
  return { [Symbol.dispose]: () => process.seteuid?.(0) };
}

test("a blob that may not be read is no missing one: it is told and stays", async () => {
  using dir = tempDir();
  const store = await openBlobStore(join(dir.path, "blobs"));
  const { sha256 } = await store.putBytes(Buffer.from("content"));
  expect(await store.readBytes(sha256, 100)).toEqual(Buffer.from("content"));
  chmodSync(blobPath(store.dir, sha256), 0);
  {
    using _ = asNobody(dir.path);
    await expect(store.readBytes(sha256, 100)).rejects.toMatchObject({ code: "EACCES" });
  }
  chmodSync(blobPath(store.dir, sha256), 0o600);
  expect(await store.readBytes(sha256, 100)).toEqual(Buffer.from("content"));
  store.remove(sha256);
  expect(await store.readBytes(sha256, 100)).toBeUndefined();
});

test("bytes of transfers that broke off are those that lie there, none where there are none", async () => {
  using dir = tempDir();
  const central = new FakeCentral();
  const store = await openBlobStore(join(dir.path, "blobs"));
  expect(await store.parts.idleBytes()).toBe(0);
  const contents = ["a", "b"].map((letter) => Buffer.alloc(500_000, letter));
  for (const [at, content] of contents.entries()) {
    central.cuts.set(digest(content), 100_000 * (at + 1));
    const want = { sha256: central.add(content), size: content.length, bytesMax: blobBytesMax };
    const fetched = store.fetch(want, async (...call) => central.getBlob(...call), never);
    await expect(fetched).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
  }
  expect(await store.parts.idleBytes()).toBe(300_000);
});
