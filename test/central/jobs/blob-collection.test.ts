// The nightly collection: one at a time, told when it fails, ended with central.

import pino from "pino";
import { expect, test } from "vitest";
import { startBlobCollection } from "../../../src/central/jobs/blob-collection.ts";

const now = new Date("2030-01-15T12:00:00Z");

test("runs come one after another; one that fails is told and the next one runs", async () => {
  const lines: string[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => lines.push(line) });
  let running = 0;
  let most = 0;
  let runs = 0;
  await using job = startBlobCollection({
    async collect(at) {
      expect(at).toBe(now);
      most = Math.max(most, ++running);
      await Promise.resolve();
      running--;
      if (++runs === 1) throw new Error("a manifest is damaged");
      return { removed: runs };
    },
    now: () => now,
    log,
  });
  await Promise.all([job.run(), job.run(), job.run()]);
  expect([runs, most]).toEqual([3, 1]);
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { err: { message: "a manifest is damaged" } },
    { removed: 2 },
    { removed: 3 },
  ]);
});

test("disposing ends the run under way and waits for it", async () => {
  const begun = Promise.withResolvers<void>();
  let ended = false;
  const job = startBlobCollection({
    async collect(_at, stop) {
      begun.resolve();
      const aborted = Promise.withResolvers<void>();
      stop.addEventListener("abort", () => aborted.resolve(), { once: true });
      await aborted.promise;
      ended = true;
      return {};
    },
    now: () => now,
    log: pino({ level: "silent" }),
  });
  const run = job.run();
  await begun.promise;
  await job[Symbol.asyncDispose]();
  expect(ended).toBe(true);
  await run;
});
