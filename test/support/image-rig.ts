// The desk of pictures with an encoder that the test answers for, a clock that it moves, and a log that it reads.

import pino from "pino";
import { DayBudget } from "../../src/agent/images/day-budget.ts";
import type { EncodeJob } from "../../src/agent/images/encoder-messages.ts";
import type { Encoded, Opened } from "../../src/agent/images/encoder-child.ts";
import { ImageDesk, type DeskTimes } from "../../src/agent/images/image-desk.ts";
import type { ImageJob } from "../../src/agent/images/image-encoder.ts";
import { Health } from "../../src/base/health.ts";
import type { Log } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";
import { until } from "./until.ts";

export function capturedLog(): { readonly log: Log; readonly lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines };
}

export const made = (text: string, cpuMs = 0): Encoded => ({
  outcome: { kind: "made", body: Buffer.from(text) },
  cpuMs,
});

/** An encoder that the test answers for. */
export class ScriptedEncoder {
  readonly asked: { readonly job: EncodeJob; readonly answer: (encoded: Encoded) => void }[] = [];
  opened: Opened = { kind: "opened", versions: { sharp: "1.2.3" } };
  isRunning = false;
  stops = 0;

  async open(): Promise<Opened> {
    this.isRunning = this.opened.kind === "opened";
    return this.opened;
  }

  async encode(job: EncodeJob): Promise<Encoded> {
    const { promise, resolve } = Promise.withResolvers<Encoded>();
    this.asked.push({ job, answer: resolve });
    return promise;
  }

  async stop(): Promise<void> {
    this.isRunning = false;
    this.stops += 1;
    for (const { answer } of this.asked) answer(killed("was ended"));
  }

  /** Answers the picture of this place among all that were asked, once it is there. */
  async answer(no: number, encoded: Encoded): Promise<EncodeJob> {
    const one = await until(`picture ${no} is asked`, () => this.asked[no]);
    one.answer(encoded);
    return one.job;
  }
}

export const killed = (reason: string, isBlamed = true): Encoded => ({
  outcome: { kind: "killed", reason, isBlamed },
  cpuMs: 0,
});

export type DeskRig = {
  readonly times?: Partial<DeskTimes>;
  readonly off?: string;
  readonly clock?: { now: Date };
};

export function openDesk({
  times = {},
  off,
  clock = { now: new Date("2026-11-29T12:00:00Z") },
}: DeskRig = {}) {
  const encoder = new ScriptedEncoder();
  const registry = new Registry();
  const health = new Health(() => clock.now);
  const { log, lines } = capturedLog();
  let kept: unknown;
  const store = { read: () => kept, write: (day: unknown) => (kept = structuredClone(day)) };
  const desk = new ImageDesk({
    encoder: off ?? encoder,
    budget: new DayBudget(store, () => clock.now),
    times: { pauseFirstMs: 1, restLeastMs: 0, ...times },
    registry,
    health,
    log,
  });
  const count = async (name: string, labels: Record<string, string> = {}): Promise<number> => {
    const values = (await registry.getSingleMetric(name)?.get())?.values ?? [];
    return values
      .filter((one) => Object.entries(labels).every(([key, value]) => one.labels[key] === value))
      .reduce((sum, { value }) => sum + value, 0);
  };
  return { encoder, desk, health, lines, clock, count, kept: () => kept };
}

export const job = (text: string, more: Partial<ImageJob> = {}): ImageJob => ({
  domain: "a.example",
  perDayMax: 1_000,
  source: Buffer.from(text),
  form: "webp",
  quality: 80,
  ...more,
});
