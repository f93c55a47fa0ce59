// Everything that both programs say, compared from outside with what was sent, for OUTSIDE_MINUTES (30). 0 differences is the only result that passes.

import { existsSync } from "node:fs";
import { outsideLog, runOutside } from "../test/support/outside-run.ts";
import { prometheusHint, prometheusMissing } from "../test/support/prometheus.ts";

const minutes = Number(process.env["OUTSIDE_MINUTES"] ?? 30);
const requestsPerSecond = Number(process.env["OUTSIDE_RPS"] ?? 60);
const seed = Number(process.env["OUTSIDE_SEED"] ?? 1);
const cycleMs = 20_000;

export async function run(say: (line: string) => void): Promise<void> {
  if (prometheusMissing) throw new Error(prometheusHint);
  if (!existsSync(outsideLog)) throw new Error(`needs an access log: ${outsideLog}`);
  const options = { lengthMs: minutes * 60_000, cycleMs, requestsPerSecond, seed };
  const { requests, comparisons, differences, unanswered } = await runOutside(options, say);
  say(
    `${minutes} min, ${requests} requests, ${comparisons} comparisons: ${differences.length} differences, ${unanswered} requests without an answer (seed ${seed})`,
  );
  if (differences.length > 0 || unanswered > 0) throw new Error(differences.join("\n"));
}
