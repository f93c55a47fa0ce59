// One run over an index of 1,000,000 entries: how fast clears make them invisible and gone, what visitors notice of it, what a commit's guard costs, how
// fast the agent starts with it, what it weighs. Each figure stands beside its limit.

import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "../test/support/free-ports.ts";
import { BigEdge } from "./support/big-edge.ts";
import { Figures, percentile } from "./support/figures.ts";
import { measureClears } from "./support/scale-clears.ts";
import { measureGuard } from "./support/scale-guard.ts";
import { measureVisitors } from "./support/scale-visitors.ts";
import { siteDomains, SitePaths } from "./support/site-paths.ts";

const entries = 1_000_000;
const starts = 5;
const mebibyte = 2 ** 20;

export async function run(say: (line: string) => void): Promise<void> {
  const figures = new Figures(say);
  const paths = new SitePaths();
  const probeDir = mkdtempSync(join(tmpdir(), "accel-loop-"));
  process.env["LOOP_PROBE_DIR"] = probeDir;
  try {
    // The origin is away: one that answered 404 to what was never its own would end the entries that the start asks about.
    const [nobody = 0] = await freePorts(1);
    await using big = await BigEdge.open(`http://127.0.0.1:${nobody}`);
    figures.head(`${entries.toLocaleString("en")} entries in three domains`);
    figures.add("written, with bodies, in", await big.writeEntries(paths, entries), "s");
    await measureStart(big, paths, figures);
    measureGuard(paths, figures);
    await measureClears(big.stateDir, paths, figures);
    await measureVisitors(big, paths, probeDir, figures);
  } finally {
    rmSync(probeDir, { recursive: true, force: true });
  }
  const load = loadavg().map((processes) => processes.toFixed(1));
  say(`load of the host over 1, 5 and 15 minutes: ${load.join(", ")}`);
  say(figures.missed.length === 0 ? "every limit met" : `missed: ${figures.missed.join("; ")}`);
}

async function measureStart(big: BigEdge, paths: SitePaths, figures: Figures): Promise<void> {
  const [domain] = siteDomains;
  const path = generatedPath(paths);
  const took: number[] = [];
  for (let i = 0; i < starts; i++) {
    took.push(await big.start(path, domain));
    if (i < starts - 1) await big.stop();
  }
  const spread = `${starts} starts: ${took.map((ms) => ms.toFixed(0)).join(", ")}`;
  const most = { most: 2_000 };
  figures.add("start to the first cached answer, p50", percentile(took, 0.5), "ms", most, spread);
  figures.add("index on disk", big.indexBytes / mebibyte, "MiB");
  figures.add("resident, agent with two workers", big.usage().rssBytes / mebibyte, "MiB");
  figures.add("resident, matcher", big.matcherUsage().rssBytes / mebibyte, "MiB");
  figures.add("shared servable bits", entries / 8 / 1_024, "KiB");
  await big.stop();
}

function generatedPath(paths: SitePaths): string {
  for (let no = 0; ; no++) {
    const { domain, kind, path, query } = paths.entry(no);
    if (domain === siteDomains[0] && kind === "generated" && query === "") return path;
  }
}
