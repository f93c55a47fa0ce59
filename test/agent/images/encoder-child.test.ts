// The encoder as a process of its own: what it makes, how it yields, and every way in which it dies.

import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { getPriority } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import {
  EncoderProcess,
  type EncoderProcessOptions,
} from "../../../src/agent/images/encoder-child.ts";
import type { EncodeJob } from "../../../src/agent/images/encoder-messages.ts";
import { pictureFormat } from "../../../src/core/images/picture-head.ts";
import { flatPng, pictureOf } from "../../support/pictures.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const entry = new URL("../../../src/agent/picturer.ts", import.meta.url);
/** Limits that nothing here reaches but where a test says so. */
const wide = { memoryMaxBytes: 2 ** 31, pictureMs: 120_000, waitMs: 120_000, startMs: 120_000 };

const openEncoder = (options: Partial<EncoderProcessOptions> = {}): EncoderProcess =>
  new EncoderProcess({ entry, ...wide, ...options });

const small = async (): Promise<EncodeJob> => ({
  kind: "encode",
  source: await pictureOf("jpeg"),
  form: "webp",
  quality: 80,
});

/** Keeps the encoder busy for seconds: 24 megapixels, which are small to send. */
const long = (): EncodeJob => ({
  kind: "encode",
  source: flatPng(5_000, 4_800),
  form: "avif",
  quality: 100,
});

function isAlive(pid: number): boolean {
  try {
    // A zombie has ended; its parent has not asked how yet.
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));
  } catch {
    return false;
  }
}

function pidOf(encoder: EncoderProcess): number {
  if (encoder.pid === undefined) throw new Error("it does not run");
  return encoder.pid;
}

/** An entry of the test's own. */
function script(directory: string, text: string): URL {
  const path = join(directory, "encoder.mjs");
  writeFileSync(path, text);
  return pathToFileURL(path);
}

test("it opens, makes a form, and yields to everybody", async () => {
  await using encoder = openEncoder();
  expect(encoder.isRunning).toBe(false);
  expect(await encoder.open()).toMatchObject({ kind: "opened", versions: { sharp: /./ } });
  const pid = pidOf(encoder);
  expect(getPriority(pid)).toBe(19);
  expect(readFileSync(`/proc/${pid}/oom_score_adj`, "latin1").trim()).toBe("1000");
  const { outcome, cpuMs } = await encoder.encode(await small());
  if (outcome.kind !== "made") throw new Error(JSON.stringify(outcome));
  expect(pictureFormat(outcome.body)).toBe("webp");
  expect(cpuMs).toBeGreaterThan(0);
  await encoder.stop();
  await until("it ends", () => !isAlive(pid));
  expect(await encoder.open()).toMatchObject({ kind: "opened" });
  expect(pidOf(encoder)).not.toBe(pid);
});

test("killed in the middle of a picture, it is told, and the next picture has another one", async () => {
  await using encoder = openEncoder();
  await encoder.open();
  const made = encoder.encode(long());
  process.kill(pidOf(encoder), "SIGKILL");
  expect(await made).toMatchObject({
    outcome: { kind: "killed", reason: "the encoder ended: SIGKILL", isBlamed: true },
  });
  await encoder.open();
  expect((await encoder.encode(await small())).outcome.kind).toBe("made");
});

test("one that stands still is killed when the time is over, and the picture is not blamed", async () => {
  await using encoder = openEncoder({ waitMs: 300 });
  await encoder.open();
  const pid = pidOf(encoder);
  process.kill(pid, "SIGSTOP");
  expect(await encoder.encode(await small())).toMatchObject({
    outcome: {
      kind: "killed",
      reason: "the encoder did not answer within 0.3 s",
      isBlamed: false,
    },
  });
  await until("it is killed", () => !isAlive(pid));
});

test("a picture that takes too much processor time ends it, and is blamed", async () => {
  await using encoder = openEncoder({ pictureMs: 50 });
  await encoder.open();
  expect(await encoder.encode(long())).toMatchObject({
    outcome: {
      kind: "killed",
      reason: "the encoder took more than 0.05 s of processor time",
      isBlamed: true,
    },
    cpuMs: expect.any(Number),
  });
});

test("a picture that takes too much memory ends it, and a small one fits", async () => {
  await using encoder = openEncoder({ memoryMaxBytes: 200 * 2 ** 20 });
  await encoder.open();
  expect((await encoder.encode(await small())).outcome.kind).toBe("made");
  expect(await encoder.encode(long())).toMatchObject({
    outcome: {
      kind: "killed",
      reason: expect.stringMatching(/^the encoder took \d+ MiB, and at most 200 are allowed$/),
      isBlamed: true,
    },
  });
});

test("one that crashes at its start, or never speaks, has failed", async () => {
  using dir = tempDir();
  {
    await using encoder = openEncoder({ entry: script(dir.path, "process.exit(7);") });
    expect(await encoder.open()).toEqual({ kind: "failed", reason: "the encoder ended: 7" });
  }
  const silent = script(dir.path, "process.on('message', () => {});");
  await using encoder = openEncoder({ entry: silent, startMs: 500 });
  expect(await encoder.open()).toEqual({
    kind: "failed",
    reason: "the encoder did not answer within 0.5 s",
  });
});

test("a host without sharp is told so by the process itself", async () => {
  using dir = tempDir();
  const without = script(
    dir.path,
    `import { registerHooks } from "node:module";
     registerHooks({
       resolve(name, context, next) {
         if (name !== "sharp") return next(name, context);
         throw new Error("Cannot find package 'sharp' imported from " + context.parentURL);
       },
     });
     await import(${JSON.stringify(entry.href)});`,
  );
  await using encoder = openEncoder({ entry: without });
  expect(await encoder.open()).toEqual({ kind: "absent", reason: "sharp is not installed" });
});

test("when main dies in the middle of a picture, the encoder ends", async () => {
  using dir = tempDir();
  const process_ = new URL("../../../src/agent/images/encoder-child.ts", import.meta.url);
  const pictures = new URL("../../support/pictures.ts", import.meta.url);
  const main = script(
    dir.path,
    `import { EncoderProcess } from ${JSON.stringify(process_.href)};
     import { flatPng } from ${JSON.stringify(pictures.href)};
     const encoder = new EncoderProcess({ entry: new URL(${JSON.stringify(entry.href)}), ...${JSON.stringify(wide)} });
     await encoder.open();
     void encoder.encode({ kind: "encode", source: flatPng(5_000, 4_800), form: "avif", quality: 100 });
     process.send(encoder.pid);`,
  );
  const child = fork(fileURLToPath(main), [], { execArgv: [] });
  const [pid] = await once(child, "message");
  expect(isAlive(Number(pid))).toBe(true);
  child.kill("SIGKILL");
  await until("the encoder ends", () => !isAlive(Number(pid)));
});
