// What visitors notice of a clear of everything: the neighbour's visitors at a fixed rate of 30 % of the host's CPU, first alone, then while 900,000
// entries of the other domain are cleared and deleted. Paired in one process of the agent, on an index that is put back before each pair.

import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { everything } from "../../src/core/patterns/pattern-recipes.ts";
import type { BigEdge } from "./big-edge.ts";
import { percentile, type Figures } from "./figures.ts";
import { visitAtPace, type Paced } from "./paced-load.ts";
import { siteDomains, type SitePaths } from "./site-paths.ts";

const pairs = 5;
const seconds = 8;
const warmUpSeconds = 3;
const calibrationRate = 500;
/** What a visit costs falls while the engine learns the code, differs from process to process, and depends on the rate. */
const calibrationsMost = 8;
const shareWithin = 0.01;
const cpuShare = 0.3;
const hotUrls = 2_000;
const probe = pathToFileURL(join(import.meta.dirname, "loop-probe.ts")).href;

type Window = {
  readonly visitors: Paced;
  readonly loopMs: readonly number[];
  readonly cpu: number;
};

export async function measureVisitors(
  big: BigEdge,
  paths: SitePaths,
  probeDir: string,
  figures: Figures,
): Promise<void> {
  const [cleared, neighbour] = siteDomains;
  const urls = urlsOf(paths, neighbour);
  const { origin, userAgent } = big.visitors;
  const headers = { host: neighbour, "user-agent": userAgent };
  const visit = (perSecond: number, forSeconds: number): Promise<Paced> =>
    visitAtPace({ origin, paths: urls, headers, perSecond, seconds: forSeconds });
  const measured: { without: Window; during: Window }[] = [];
  let rate = 0;
  for (let i = 0; i < pairs; i++) {
    big.restore();
    process.env["NODE_OPTIONS"] = `--import ${probe}`;
    await big.start(urls[0] ?? "/", neighbour);
    delete process.env["NODE_OPTIONS"];
    await visit(calibrationRate, warmUpSeconds);
    rate = await calibrate(big, visit, rate);
    const window = (): Promise<Window> => observe(big, probeDir, () => visit(rate, seconds));
    const without = await window();
    const clearing = big.clear(cleared, [everything]);
    const during = await window();
    measured.push({ without, during });
    const { matched, invisible_ms: invisibleMs, gone_ms: goneMs } = await clearing;
    if (i === 0) {
      figures.head(
        `visitors of a neighbour at ${rate.toFixed(0)}/s while ${matched.toLocaleString("en")} entries are cleared, ${pairs} pairs of ${seconds} s`,
      );
      figures.add("time to invisible of everything, under load", invisibleMs, "ms", { most: 600 });
      figures.add("deletion under load", (matched * 1_000) / goneMs, "entries/s");
    }
    await big.stop();
  }
  show(measured, figures);
}

/** The rate at which the agent takes its share of the host's CPU: of windows as long as those that are measured, until one has had it. */
async function calibrate(
  big: BigEdge,
  visit: (perSecond: number, forSeconds: number) => Promise<Paced>,
  known: number,
): Promise<number> {
  let rate = known === 0 ? calibrationRate : known;
  for (let i = 0; i < calibrationsMost; i++) {
    const [fromMs, cpuS] = [performance.now(), big.usage().cpuS];
    await visit(rate, seconds);
    const tookS = (performance.now() - fromMs) / 1_000;
    const share = (big.usage().cpuS - cpuS) / tookS / availableParallelism();
    if (Math.abs(share - cpuShare) <= shareWithin) break;
    rate = Math.round((rate * cpuShare) / share);
  }
  return rate;
}

async function observe(
  big: BigEdge,
  probeDir: string,
  action: () => Promise<Paced>,
): Promise<Window> {
  const [fromMs, cpuS] = [Date.now(), big.usage().cpuS];
  const visitors = await action();
  const toMs = Date.now();
  const cpu = (big.usage().cpuS - cpuS) / ((toMs - fromMs) / 1_000) / availableParallelism();
  await sleep(1_000); // Until the probes have written what they saw.
  return { visitors, loopMs: latenessBetween(probeDir, fromMs, toMs), cpu };
}

function latenessBetween(probeDir: string, fromMs: number, toMs: number): number[] {
  return readdirSync(probeDir).flatMap((name) =>
    readFileSync(join(probeDir, name), "utf8")
      .split("\n")
      .map((line) => line.split(",").map(Number))
      .flatMap(([at = 0, lateMs = 0]) => (at >= fromMs && at <= toMs ? [lateMs] : [])),
  );
}

/** The pair with the median ratio counts: the host has other things to do as well. */
function show(measured: readonly { without: Window; during: Window }[], figures: Figures): void {
  const rows = [
    ["workers' loop, p99", ({ loopMs }: Window) => percentile(loopMs, 0.99)],
    ["visitors, p99", ({ visitors }: Window) => percentile(visitors.tookMs, 0.99)],
    ["visitors, p50", ({ visitors }: Window) => percentile(visitors.tookMs, 0.5)],
  ] as const;
  for (const [name, of] of rows) {
    const ratios = measured.map(({ without, during }) => of(during) / of(without));
    const each = measured.map(
      ({ without, during }) => `${of(without).toFixed(2)} → ${of(during).toFixed(2)} ms`,
    );
    const limit = name.endsWith("p99") ? { most: 2 } : undefined;
    figures.add(
      `${name}, during / without, median of pairs`,
      percentile(ratios, 0.5),
      "×",
      limit,
      each.join(", "),
    );
  }
  const all = measured.flatMap(({ without, during }) => [without, during]);
  const failed = all.reduce((sum, { visitors }) => sum + visitors.failed, 0);
  const misses = all.reduce((sum, { visitors: { tookMs, hits } }) => sum + tookMs.length - hits, 0);
  figures.add("visitors without an answer, or with a miss", failed + misses, "", { most: 0 });
  const cpu = all.map((window) => `${(window.cpu * 100).toFixed(0)} %`);
  const alone = measured.map(({ without }) => without.cpu * 100);
  figures.add(
    "CPU of the agent without, of the host's, median of pairs",
    percentile(alone, 0.5),
    "%",
    undefined,
    cpu.join(", "),
  );
}

function urlsOf(paths: SitePaths, wanted: string): string[] {
  const urls: string[] = [];
  for (let no = 0; urls.length < hotUrls; no++) {
    const { domain, kind, path, query } = paths.entry(no);
    if (domain === wanted && kind === "generated")
      urls.push(query === "" ? path : `${path}?${query}`);
  }
  return urls;
}
