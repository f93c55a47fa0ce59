// Import of a large documentation site (10,290 files, 276 MB) through the real agent and central: time, progress, equality of every file, and what a
// second import moves. Beside it rsync of the same tree to another directory, or a plain copy where there is no rsync, until the disk has every file.
// ACCEL_IMPORT_TREE names a real tree in place of the one made here.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { copyFile, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { inParallel } from "../src/agent/viewset/parallel.ts";
import { digestsBelow, ImportEdge } from "../test/support/import-edge.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { layDocTree } from "./support/doc-tree.ts";
import { Figures } from "./support/figures.ts";

const deadlineMs = 600_000;
/** Often enough for the progress, seldom enough that asking costs nothing. */
const askEveryMs = 100;
const copiesAtOnce = 8;
const ticksPerSecond = 100; // Of Linux's /proc/PID/stat.

export async function run(say: (line: string) => void): Promise<void> {
  using dir = tempDir();
  const named = process.env["ACCEL_IMPORT_TREE"];
  const root = named ?? join(dir.path, "site");
  if (named === undefined && layDocTree(root) === undefined) {
    say("skipped: ../shared/data/paths is not here");
    return;
  }
  const digests = await digestsBelow(root);
  const figures = new Figures(say);
  figures.head(`${digests.size} files of ${named ?? "the list of openjdk-17-doc"}`);
  const peer = await peerOf(root, join(dir.path, "copy"), [...digests.keys()]);
  await using site = await ImportEdge.open(root);
  const first = await timed(site, "first");
  const beside = `${(first.tookS / peer.tookS).toFixed(1)} × ${peer.name} (${peer.tookS.toFixed(1)} s)`;
  figures.add("import", first.tookS, "s", { most: 60 }, beside);
  figures.add("CPU time of agent and central", first.cpuS, "s");
  figures.add("states of progress seen", first.states, "", { least: 10 });
  figures.add("times that progress went back", first.back, "", { most: 0 });
  const differing = await site.differing(first.viewsetId);
  figures.add("files that differ at central, or are missing", differing.length, "", { most: 0 });
  const sent = await site.blobsSent();
  const second = await timed(site, "second");
  figures.add("second import of the same tree", second.tookS, "s", { most: first.tookS });
  figures.add("blobs it moved", (await site.blobsSent()) - sent, "", { most: 0 });
  if (figures.missed.length > 0) say(`missed: ${figures.missed.join("; ")}`);
}

async function timed(
  site: ImportEdge,
  name: string,
): Promise<{ tookS: number; cpuS: number; states: number; back: number; viewsetId: number }> {
  const began = performance.now();
  const cpuBefore = cpuS(site);
  if ((await site.start(name)) !== 200) throw new Error(`import ${name} was not started`);
  const end = await site.ended(name, deadlineMs, askEveryMs);
  if (end.status !== "done") throw new Error(end.error);
  const done = end.seen.flatMap(({ progress: at }) =>
    at === undefined
      ? []
      : [at.phase === "reading" ? at.bytes_done : at.bytes_total + at.bytes_done],
  );
  return {
    tookS: (performance.now() - began) / 1_000,
    cpuS: cpuS(site) - cpuBefore,
    states: new Set(done).size,
    back: done.filter((bytes, i) => bytes < (done[i - 1] ?? 0)).length,
    viewsetId: end.viewset_id ?? 0,
  };
}

/** User and system time of both programs since they were started. */
function cpuS({ edge }: ImportEdge): number {
  const ticks = [edge.central.pid, edge.agent.pid].map((pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return Number(fields[11]) + Number(fields[12]);
  });
  return ticks.reduce((sum, own) => sum + own, 0) / ticksPerSecond;
}

/** With what it takes until the disk has it, as an import has. */
async function peerOf(
  from: string,
  to: string,
  paths: readonly string[],
): Promise<{ readonly name: string; readonly tookS: number }> {
  const hasRsync = spawnSync("rsync", ["--version"]).status === 0;
  mkdirSync(to);
  const began = performance.now();
  if (hasRsync) execFileSync("rsync", ["-a", "--fsync", `${from}/`, `${to}/`]);
  else await inParallel(paths, copiesAtOnce, async (path) => copySynced(from, to, path), never);
  return {
    name: hasRsync
      ? "rsync -a --fsync"
      : `copying and syncing each file, ${copiesAtOnce} at a time`,
    tookS: (performance.now() - began) / 1_000,
  };
}

const never = new AbortController().signal;

async function copySynced(from: string, to: string, path: string): Promise<void> {
  const target = join(to, path);
  mkdirSync(dirname(target), { recursive: true });
  await copyFile(join(from, path), target);
  await using file = await open(target, "r+");
  await file.sync();
}
