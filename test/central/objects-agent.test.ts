// The agent's own client and blob store at a central whose bucket fails: uploads and downloads end in a fault that is tried again, go on where they were, and are whole.

import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { CentralClient } from "../../src/agent/link/central-client.ts";
import { isBetweenUs } from "../../src/agent/link/refusal.ts";
import { fixedSecret } from "../../src/agent/link/site-secret.ts";
import { openBlobStore } from "../../src/agent/viewset/blob-store.ts";
import { blobPath } from "../../src/core/blob-path.ts";
import { parseName16, parseSecret16, sha256Of } from "../../src/core/ids.ts";
import { blobBytesMax } from "../../src/wire/manifest.ts";
import { bucketName } from "../support/bucket-rig.ts";
import { newSite, settingsOf, start } from "../support/central-whole.ts";
import { objectsYaml } from "../support/objects-central.ts";
import { passing, startS3Faults, type S3Fault } from "../support/s3-faults.ts";
import { startS3Server } from "../support/s3-server.ts";
import { tempDir } from "../support/temp-dir.ts";

const never = new AbortController().signal;

async function setUp() {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir()).path;
  const server = stack.use(await startS3Server(bucketName));
  const faults = stack.use(await startS3Faults(server.port));
  mkdirSync(join(dir, "state"));
  const settings = settingsOf(join(dir, "state"), objectsYaml(dir, faults.port));
  const central = stack.use(await start(settings));
  const site = await newSite(central.url);
  const [name16, secret16] = [parseName16(site.name16), parseSecret16(site.secret16)];
  if (name16 === undefined || secret16 === undefined) throw new Error("central gave no site");
  const client = stack.use(
    new CentralClient({
      centralUrl: central.url,
      name16,
      secret: fixedSecret(secret16),
      stop: never,
    }),
  );
  const store = await openBlobStore(join(dir, "agent-blobs"));
  const owned = stack.move();
  return { server, faults, client, store, [Symbol.asyncDispose]: async () => owned.disposeAsync() };
}

const rows: readonly (readonly [string, S3Fault])[] = [
  ["answers 500", { kind: "status", status: 500, code: "InternalError" }],
  ["ends connections", { kind: "refuse" }],
  ["forbids", { kind: "status", status: 403, code: "AccessDenied" }],
];

test.each(rows)(
  "a bucket that %s: the upload is one to be tried again, and then there",
  async (_, fault) => {
    await using rig = await setUp();
    const bytes = randomBytes(300_000);
    const sha256 = sha256Of(bytes);
    rig.faults.choose = () => fault;
    const failed = await rig.client.putBlob(sha256, bytes, never).catch((error: unknown) => error);
    expect(isBetweenUs(failed)).toBe(true);
    rig.faults.choose = () => passing;
    expect(await rig.client.blobsMissing([sha256], never)).toEqual([sha256]);
    await rig.client.putBlob(sha256, bytes, never);
    expect(await rig.client.blobsMissing([sha256], never)).toEqual([]);
    expect([...rig.server.objects.values()].map(sha256Of)).toEqual([sha256]);
  },
);

test("a bucket that breaks off: the download goes on where it was, and what is there is whole", async () => {
  await using rig = await setUp();
  const bytes = randomBytes(900_000);
  const sha256 = sha256Of(bytes);
  await rig.client.putBlob(sha256, bytes, never);
  const want = { sha256, size: bytes.byteLength, bytesMax: blobBytesMax };
  const from: number[] = [];
  const fetch = async (): Promise<void> =>
    rig.store.fetch(
      want,
      async (digest, first, signal, isText) => {
        from.push(first);
        return rig.client.getBlob(digest, first, signal, isText);
      },
      never,
    );
  rig.faults.choose = () => ({ kind: "cut", afterBytes: 200_000, isSilent: false });
  const failed = await fetch().catch((error: unknown) => error);
  expect(isBetweenUs(failed)).toBe(true);
  expect(rig.store.has(want)).toBe(false);
  rig.faults.choose = () => passing;
  await fetch();
  await rig.store.settle();
  expect([from.length, from[0], Number(from[1]) > 0]).toEqual([2, 0, true]);
  expect(readFileSync(blobPath(rig.store.dir, sha256)).equals(bytes)).toBe(true);
});
