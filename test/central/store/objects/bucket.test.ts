// The client of S3 against a server that checks signatures, and a proxy that fails: what arrives is whole or an error with words.

import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { sha256Of } from "../../../../src/core/ids.ts";
import {
  bucketName,
  impatientLimits,
  prefix,
  quickLimits,
  startBucketRig,
  type BucketRig,
} from "../../../support/bucket-rig.ts";
import { passing, type S3Fault } from "../../../support/s3-faults.ts";
import { s3Key } from "../../../support/s3-server.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";

const text = Buffer.from("0123456789");
const whole = { first: 0, last: 9, size: 10 };
const unreachable = (words: string | RegExp) =>
  expect.objectContaining({
    code: "OBJECTS_UNREACHABLE",
    message: expect.stringMatching(words),
  });

/** Fails the first so many requests of a method. */
function failFirst(rig: BucketRig, method: string, count: number, fault: S3Fault): void {
  let left = count;
  rig.faults.choose = (asked) => (asked === method && left-- > 0 ? fault : passing);
}

const error: S3Fault = { kind: "status", status: 500, code: "InternalError" };

test("what was put is there, in ranges, until it is removed", async () => {
  await using rig = await startBucketRig();
  const { bucket, server } = rig;
  expect(await bucket.sizeOf("a/b")).toBeUndefined();
  await bucket.put("a/b", text, sha256Of(text));
  expect([...server.objects.keys()]).toEqual([`${prefix}a/b`]);
  expect(await bucket.sizeOf("a/b")).toBe(10);
  for (const [first, last, expected] of [
    [0, 9, "0123456789"],
    [3, 5, "345"],
    [9, 9, "9"],
    [5, 4, ""],
  ] as const)
    expect(String(await buffer(await bucket.read("a/b", { first, last, size: 10 })))).toBe(
      expected,
    );
  await bucket.remove("a/b");
  await bucket.remove("a/b");
  expect(server.objects.size).toBe(0);
});

test("the access key is not read for each request", async () => {
  let reads = 0;
  await using rig = await startBucketRig({ place: { accessKey: () => (reads++, s3Key) } });
  for (const key of ["a", "b", "c"]) await rig.bucket.put(key, text, sha256Of(text));
  expect([reads, rig.server.objects.size]).toEqual([1, 3]);
});

test("a view of a larger memory is sent alone", async () => {
  await using rig = await startBucketRig();
  const view = new Uint8Array(text.buffer, text.byteOffset + 2, 3);
  await rig.bucket.put("view", view, sha256Of(view));
  expect(String(rig.server.objects.get(`${prefix}view`))).toBe("234");
});

test("a large file goes in parts, and is whole; nothing is left of a try that failed", async () => {
  await using rig = await startBucketRig();
  using dir = tempDir();
  const bytes = randomBytes(17 * 2 ** 20);
  const source = { path: join(dir.path, "large"), size: bytes.byteLength };
  writeFileSync(source.path, bytes);
  await rig.bucket.put("large", source, sha256Of(bytes));
  expect(rig.server.objects.get(`${prefix}large`)?.equals(bytes)).toBe(true);
  expect(rig.server.asked.filter((line) => line.includes("partNumber"))).toHaveLength(3);
  // A part that fails for good ends the upload, and its parts are given back.
  rig.faults.choose = (method, path) =>
    method === "PUT" && path.endsWith("second") ? error : passing;
  await expect(rig.bucket.put("second", source, sha256Of(bytes))).rejects.toEqual(
    unreachable("it answered 500"),
  );
  expect(rig.server.uploads.size).toBe(0);
  expect(rig.server.objects.size).toBe(1);
});

test("the answer to the end of an upload in parts may get lost", async () => {
  await using rig = await startBucketRig();
  using dir = tempDir();
  const bytes = randomBytes(9 * 2 ** 20);
  const source = { path: join(dir.path, "large"), size: bytes.byteLength };
  writeFileSync(source.path, bytes);
  let posts = 0;
  rig.faults.choose = (method) => (method === "POST" && ++posts === 2 ? { kind: "lost" } : passing);
  await rig.bucket.put("large", source, sha256Of(bytes));
  expect(rig.server.objects.get(`${prefix}large`)?.equals(bytes)).toBe(true);
});

test("a file that changed after it was digested is not taken for what it was", async () => {
  await using rig = await startBucketRig();
  using dir = tempDir();
  for (const size of [10, 9 * 2 ** 20]) {
    const path = join(dir.path, String(size));
    writeFileSync(path, Buffer.alloc(size, "x"));
    await expect(rig.bucket.put("k", { path, size }, sha256Of("other"))).rejects.toThrow(
      /changed on the disk/,
    );
  }
  expect(rig.server.objects.size).toBe(0);
  expect(rig.server.uploads.size).toBe(0);
});

test.each<[string, S3Fault]>([
  ["an error", error],
  ["no answer to the connection", { kind: "refuse" }],
  ["a request for fewer requests", { kind: "status", status: 503, code: "SlowDown" }],
  ["an answer that got lost", { kind: "lost" }],
])("%s, twice: the third attempt succeeds", async (_, fault) => {
  await using rig = await startBucketRig();
  for (const method of ["PUT", "GET", "HEAD", "DELETE"]) {
    rig.server.objects.clear();
    if (method !== "PUT") rig.server.objects.set(`${prefix}k`, text);
    failFirst(rig, method, 2, fault);
    if (method === "PUT") await rig.bucket.put("k", text, sha256Of(text));
    if (method === "GET")
      expect((await buffer(await rig.bucket.read("k", whole))).equals(text)).toBe(true);
    if (method === "HEAD") expect(await rig.bucket.sizeOf("k")).toBe(10);
    if (method === "DELETE") await rig.bucket.remove("k");
    expect(rig.server.objects.has(`${prefix}k`)).toBe(method !== "DELETE");
  }
  expect(rig.calls.map(({ failure }) => failure)).toEqual(Array(4).fill(undefined));
});

test("what fails three times is an error that says where, what and why", async () => {
  await using rig = await startBucketRig();
  rig.faults.choose = () => error;
  const where = `the object k of s3://${bucketName}/${prefix} at http://127.0.0.1:${rig.faults.port}: it answered 500 \\(InternalError: told by the proxy\\)`;
  await expect(rig.bucket.put("k", text, sha256Of(text))).rejects.toEqual(unreachable(where));
  await expect(rig.bucket.read("k", whole)).rejects.toEqual(unreachable(where));
  await expect(rig.bucket.remove("k")).rejects.toEqual(unreachable(where));
  expect(rig.calls.map(({ call, failure }) => [call, failure?.kind])).toEqual([
    ["put", "failed"],
    ["get", "failed"],
    ["delete", "failed"],
  ]);
});

test("a server that never answers is waited for so long, and no longer", async () => {
  await using rig = await startBucketRig({ limits: impatientLimits });
  rig.faults.choose = () => ({ kind: "silent" });
  const words = /it did not answer within 15\d ms/;
  await expect(rig.bucket.put("k", text, sha256Of(text))).rejects.toEqual(unreachable(words));
  await expect(rig.bucket.read("k", whole)).rejects.toEqual(unreachable(words));
});

test("what is silent is not asked again where that could take too long; what refuses is", async () => {
  await using rig = await startBucketRig({ limits: { ...impatientLimits, silentMs: 200 } });
  let asked = 0;
  const fail = (kind: "silent" | "refused"): void => {
    asked = 0;
    rig.faults.choose = () => {
      asked++;
      return kind === "silent" ? { kind } : { kind: "status", status: 503, code: "SlowDown" };
    };
  };
  fail("silent");
  await expect(rig.bucket.put("k", text, sha256Of(text))).rejects.toEqual(unreachable(/answer/));
  expect(asked).toBe(1);
  fail("refused");
  await expect(rig.bucket.put("k", text, sha256Of(text))).rejects.toEqual(unreachable(/./));
  expect(asked).toBe(3);
});

test("a silent bucket is told while the first attempt still waits; one that answers meanwhile is not", async () => {
  await using rig = await startBucketRig({
    limits: { ...quickLimits, doubtMs: 30, doubtAnswerMs: 100 },
  });
  const heads = (): readonly unknown[] => rig.calls.filter(({ call }) => call === "head");
  let asked = 0;
  rig.faults.choose = (method) => {
    if (method !== "HEAD") return { kind: "silent" };
    asked++;
    return passing;
  };
  const put = rig.bucket.put("k", text, sha256Of(text));
  await until("it was asked", () => asked > 1);
  expect(rig.calls).toEqual([]);
  rig.faults.choose = () => ({ kind: "silent" });
  await until("it is told", () => heads().length > 0);
  expect(rig.calls[0]).toMatchObject({
    failure: { kind: "failed", reason: expect.stringMatching(/did not answer within 10\d ms/) },
  });
  expect(rig.calls.every(({ call }) => call === "head")).toBe(true);
  rig.stop.abort();
  await expect(put).rejects.toEqual(unreachable("abort"));
});

test("who stops waits for no attempt", async () => {
  await using rig = await startBucketRig();
  const asked = Promise.withResolvers<void>();
  rig.faults.choose = () => {
    asked.resolve();
    return { kind: "silent" };
  };
  const put = rig.bucket.put("k", text, sha256Of(text));
  await asked.promise;
  rig.stop.abort();
  await expect(put).rejects.toEqual(unreachable("abort"));
});

test("a body that breaks off is asked for from there, and one that always does fails", async () => {
  await using rig = await startBucketRig();
  const bytes = randomBytes(200_000);
  rig.server.objects.set(`${prefix}k`, bytes);
  const range = { first: 0, last: bytes.byteLength - 1, size: bytes.byteLength };
  failFirst(rig, "GET", 2, { kind: "cut", afterBytes: 70_000, isSilent: false });
  expect((await buffer(await rig.bucket.read("k", range))).equals(bytes)).toBe(true);
  expect(rig.server.asked.filter((line) => line.startsWith("GET"))).toHaveLength(3);
  rig.faults.choose = () => ({ kind: "cut", afterBytes: 10_000, isSilent: false });
  await expect(rig.bucket.read("k", range).then(buffer)).rejects.toEqual(
    unreachable("the object k"),
  );
});

test("a body that falls silent is given up, but not while nobody reads it", async () => {
  await using rig = await startBucketRig({ limits: impatientLimits });
  const bytes = randomBytes(3_000_000);
  rig.server.objects.set(`${prefix}k`, bytes);
  const range = { first: 0, last: bytes.byteLength - 1, size: bytes.byteLength };
  rig.faults.choose = () => ({ kind: "cut", afterBytes: 1_000, isSilent: true });
  await expect(rig.bucket.read("k", range).then(buffer)).rejects.toEqual(
    unreachable("nothing came for 150 ms"),
  );
  rig.faults.choose = () => passing;
  const body = await rig.bucket.read("k", range);
  // Longer than the limit, as the clock of the limit counts it.
  const over = AbortSignal.timeout(2 * impatientLimits.idleMs);
  while (!over.aborted) await setImmediate();
  expect((await buffer(body)).equals(bytes)).toBe(true);
});

test("what is not there, or has another size, is an error and no empty body", async () => {
  await using rig = await startBucketRig();
  await expect(rig.bucket.read("none", whole)).rejects.toEqual(
    unreachable("there is no such object"),
  );
  expect(rig.calls.map(({ failure }) => failure?.kind)).toEqual(["missing"]);
  rig.server.objects.set(`${prefix}k`, Buffer.from("0123"));
  await expect(rig.bucket.read("k", whole)).rejects.toEqual(
    unreachable("it answered bytes 0-3/4, wanted was bytes 0-9/10"),
  );
});

test.each([
  [{ bucket: "another" }, "there is no such bucket"],
  [
    { accessKey: () => ({ ...s3Key, secret: "wrong" }) },
    "the secret is not that of the access key",
  ],
  [{ accessKey: () => ({ ...s3Key, id: "wrong" }) }, "the server does not know the access key"],
  [{ region: "us-east-1" }, "the secret is not that of the access key"],
])("%j is refused at once", async (place, words) => {
  await using rig = await startBucketRig({ place });
  let asked = 0;
  rig.faults.choose = () => (asked++, passing);
  await expect(rig.bucket.put("k", text, sha256Of(text))).rejects.toEqual(unreachable(words));
  expect([asked, rig.calls.map(({ failure }) => failure?.kind)]).toEqual([1, ["refused"]]);
  expect(rig.server.objects.size).toBe(0);
});
