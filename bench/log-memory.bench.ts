// Memory of the agent over 20 minutes with visitors all the time and central away half of it: its slope, and that nothing was lost meanwhile.
// LOG_MEMORY_MINUTES sets another length.

import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { showFigures } from "../test/support/log-oracle-judge.ts";
import { Oracle, randomFrom } from "../test/support/log-oracle-run.ts";
import { Scene } from "../test/support/log-oracle-scene.ts";
import { growthOf } from "./support/level.ts";
import { unitEnvironment } from "./support/unit-options.ts";

const minutes = Number(process.env["LOG_MEMORY_MINUTES"] ?? 20);
/** Of which central is away the second half. */
const periods = 10;
const sampleEveryMs = 2_000;
/** The first part fills caches and pools. */
const warmUpShare = 0.3;
const spoolMax = "1GiB";

type Sample = { readonly atMs: number; readonly mib: number };

/** Of the highest in the last third by the highest in the third before it. */
const growthMax = 1.05;

export async function run(say: (line: string) => void): Promise<void> {
  using _ = unitEnvironment("accel-agent");
  await using scene = await Scene.open({ spool: { max: spoolMax } });
  await using oracle = new Oracle(scene, randomFrom(1));
  const beganMs = performance.now();
  const totalMs = minutes * 60_000;
  const samples: Sample[] = [];
  let backlogMax = 0;
  for (;;) {
    const atMs = performance.now() - beganMs;
    if (atMs >= totalMs) break;
    const isAway = ((atMs / totalMs) * periods) % 1 >= 0.5;
    scene.line.state = isAway ? "cut" : "open";
    samples.push({ atMs, mib: residentMib(scene.agent.pid) });
    backlogMax = Math.max(backlogMax, oracle.sums?.spooled ?? 0);
    await sleep(sampleEveryMs);
  }
  await oracle.settle();
  const warm = samples.filter(({ atMs }) => atMs >= warmUpShare * totalMs);
  const { figures } = oracle;
  say(
    `${minutes} minutes, ${figures.claims} requests, backlog up to ${backlogMax} records: resident ${spread(samples)} MiB, behind the first ${100 * warmUpShare} % ${spread(warm)} MiB`,
  );
  say(
    `slope behind the first ${100 * warmUpShare} %: ${slopePerHour(warm).toFixed(1)} MiB an hour`,
  );
  const growth = growthOf(samples.map(({ mib }) => mib));
  say(
    `highest of the last third / of the one before: ${growth.toFixed(3)} × (at most ${growthMax})`,
  );
  say(showFigures(figures));
  if (growth > growthMax) throw new Error("the agent's memory is not level");
  if (figures.unexplained.length > 0) throw new Error(figures.unexplained.slice(0, 20).join("\n"));
}

function residentMib(pid: number): number {
  const kib = /^VmRSS:\s*(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib ?? 0) / 1_024;
}

function spread(samples: readonly Sample[]): string {
  const sorted = samples.map(({ mib }) => mib).sort((a, b) => a - b);
  const at = (share: number): string =>
    (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(0);
  return `${at(0)} to ${at(1)}, median ${at(0.5)}`;
}

/** Least squares. */
function slopePerHour(samples: readonly Sample[]): number {
  const meanAt = mean(samples.map(({ atMs }) => atMs));
  const meanMib = mean(samples.map(({ mib }) => mib));
  const over = samples.reduce((sum, { atMs, mib }) => sum + (atMs - meanAt) * (mib - meanMib), 0);
  const under = samples.reduce((sum, { atMs }) => sum + (atMs - meanAt) ** 2, 0);
  return (over / under) * 3_600_000;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
