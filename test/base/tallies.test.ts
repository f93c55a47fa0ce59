// Tallies are exposed as the library's own counters and histograms are, alone and summed over threads.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  createMetrics,
  createTallies,
  exposeMetrics,
  Registry,
  type TallyTable,
} from "../../src/base/metrics.ts";

const table = {
  accel_agent_asked_total: { kind: "counter", help: "Asked.", labels: ["domain", "cache"] },
  accel_agent_took_seconds: {
    kind: "histogram",
    help: "Took.",
    labels: ["domain"],
    buckets: [0.1, 1, 5],
  },
} as const satisfies TallyTable;

type Step = { readonly domain: string; readonly cache: string; readonly seconds: number };

const steps = fc.array(
  fc.record({
    domain: fc.constantFrom("a.example", "b.example", 'c"\\\n'),
    cache: fc.constantFrom("hit", "miss"),
    // Sums of them are exact.
    seconds: fc.integer({ min: 0, max: 80 }).map((eighths) => eighths / 8),
  }),
);

function byTallies(done: readonly Step[]): Registry {
  const registry = new Registry();
  const tallies = createTallies(table, registry);
  for (const { domain, cache, seconds } of done) {
    tallies.accel_agent_asked_total.cell(domain, cache).value++;
    const took = tallies.accel_agent_took_seconds;
    took.observe(took.cell(domain), seconds);
  }
  return registry;
}

function byLibrary(done: readonly Step[]): Registry {
  const registry = new Registry();
  const metrics = createMetrics(table, registry);
  for (const { domain, cache, seconds } of done) {
    metrics.accel_agent_asked_total.inc({ domain, cache });
    metrics.accel_agent_took_seconds.observe({ domain }, seconds);
  }
  return registry;
}

/** The order of labels within a series means nothing. */
function sorted(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) =>
      line.replace(/\{(.*)\}/, (_, labels: string) => `{${labels.split(",").sort().join(",")}}`),
    )
    .filter((line) => line !== "");
}

test("one registry says the same", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (done) => {
      expect(sorted(await byTallies(done).metrics())).toEqual(
        sorted(await byLibrary(done).metrics()),
      );
    }),
  );
});

test("so do several threads together", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { maxLength: 3 }), async (threads) => {
      const exposed = async (make: (done: readonly Step[]) => Registry): Promise<string> =>
        exposeMetrics(
          structuredClone(
            await Promise.all(threads.map(async (done) => make(done).getMetricsAsJSON())),
          ),
        );
      expect(sorted(await exposed(byTallies))).toEqual(sorted(await exposed(byLibrary)));
    }),
  );
});

test("a cell is one and the same for the same labels, and counts nothing of others", () => {
  const { accel_agent_asked_total: asked } = createTallies(table, new Registry());
  expect(asked.cell("a.example", "hit")).toBe(asked.cell("a.example", "hit"));
  expect(asked.cell("a.example", "hit")).not.toBe(asked.cell("a.example", "miss"));
  expect(asked.cell('a","b', "c")).not.toBe(asked.cell("a", 'b","c'));
});

test("a name that no metric may have, a name twice and labels that are missing are defects", () => {
  const spec = { kind: "counter", help: "x" } as const;
  const registry = new Registry();
  expect(() => createTallies({ asked: spec }, registry)).toThrow("asked");
  expect(() => createTallies(table, registry).accel_agent_asked_total.cell("a.example")).toThrow(
    "accel_agent_asked_total has the labels domain, cache",
  );
  expect(() => createTallies(table, registry)).toThrow(/already been registered/);
});
