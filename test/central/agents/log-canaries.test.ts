// A scrape of central's metrics while the store, or the request logs, do not answer: it is answered all the same, says so, and tells no age that it does not know.

import { expect, test } from "vitest";
import { Registry } from "../../../src/base/metrics.ts";
import { createCanaryAges } from "../../../src/central/agents/log-canaries.ts";
import { createAgentMetrics } from "../../../src/central/agents/metrics.ts";

const now = (): Date => new Date(60_000);
const seen = [{ siteId: 7, arrivedMs: 50_000, atUs: 50e6 }];
const names = new Map([[7, "00112233445566aa"]]);

type Names = ReadonlyMap<number, string>;

function scene(asked: () => Promise<Names>, canaries = async () => seen) {
  const registry = new Registry();
  const errors: unknown[] = [];
  const tell = createCanaryAges({
    thread: { canaries },
    metrics: createAgentMetrics(registry),
    names: asked,
    now,
    onError: (error) => void errors.push(error),
  });
  const scrape = async (): Promise<readonly string[]> => {
    await tell();
    const told = /^accel_central_(?:scrape_missing|log_canary_age_seconds)\{.*$/gm;
    return (await registry.metrics()).match(told) ?? [];
  };
  return { scrape, errors };
}

const missing = (logs: number, store: number): readonly string[] => [
  `accel_central_scrape_missing{of="logs"} ${logs}`,
  `accel_central_scrape_missing{of="store"} ${store}`,
];
const age = 'accel_central_log_canary_age_seconds{deployment="00112233445566aa"} 10';

test("a store that is silent holds no scrape up, is asked once by all of them, and what it answers late is used", async () => {
  const answers: ((names: Names) => void)[] = [];
  const { scrape } = scene(async () => {
    const { promise, resolve } = Promise.withResolvers<Names>();
    answers.push(resolve);
    return promise;
  });
  const beganMs = performance.now();
  expect(await Promise.all([scrape(), scrape()])).toEqual([missing(0, 1), missing(0, 1)]);
  expect(performance.now() - beganMs).toBeLessThan(5_000);
  expect(answers).toHaveLength(1);
  const later = scrape();
  answers[0]?.(names);
  expect(await later).toEqual([...missing(0, 0), age]);
  const next = scrape();
  expect(answers).toHaveLength(2);
  answers[1]?.(names);
  await next;
});

test("a store that is away is told, and asked again at the next scrape", async () => {
  let isAway = true;
  const { scrape, errors } = scene(async () => {
    if (isAway) throw new Error("away");
    return names;
  });
  expect(await scrape()).toEqual(missing(0, 1));
  expect(errors).toEqual([new Error("away")]);
  isAway = false;
  expect(await scrape()).toEqual([...missing(0, 0), age]);
});

test("request logs that do not answer are told, and no age is", async () => {
  let isAway = false;
  const { scrape } = scene(
    async () => names,
    async () => {
      if (isAway) throw new Error("away");
      return seen;
    },
  );
  expect(await scrape()).toEqual([...missing(0, 0), age]);
  isAway = true;
  expect(await scrape()).toEqual(missing(1, 0));
});
