// Import of a large documentation site (10,290 files, 276 MB) through the real agent and central: time, progress, equality of every file, and what a
// second import moves. Beside it rsync of the same tree to another directory. ACCEL_IMPORT_TREE names a real tree in place of the one made here.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { digestsBelow, ImportEdge } from "../test/support/import-edge.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { layDocTree } from "./support/doc-tree.ts";
import { Figures } from "./support/figures.ts";

const deadlineMs = 600_000;

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
  const peerS = rsyncS(root, join(dir.path, "copy"));
  await using site = await ImportEdge.open(root);
  const first = await timed(site, "first");
  figures.add("import", first.tookS, "s", { most: 60 }, ratio(first.tookS, peerS));
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
): Promise<{ tookS: number; states: number; back: number; viewsetId: number }> {
  const began = performance.now();
  if ((await site.start(name)) !== 200) throw new Error(`import ${name} was not started`);
  const end = await site.ended(name, deadlineMs);
  if (end.status !== "done") throw new Error(end.error);
  const done = end.seen.flatMap(({ progress: at }) =>
    at === undefined
      ? []
      : [at.phase === "reading" ? at.bytes_done : at.bytes_total + at.bytes_done],
  );
  return {
    tookS: (performance.now() - began) / 1_000,
    states: new Set(done).size,
    back: done.filter((bytes, i) => bytes < (done[i - 1] ?? 0)).length,
    viewsetId: end.viewset_id ?? 0,
  };
}

/** Undefined: there is no rsync. With what it takes until the disk has it, as an import has. */
function rsyncS(from: string, to: string): number | undefined {
  if (spawnSync("rsync", ["--version"]).status !== 0) return undefined;
  mkdirSync(to);
  const began = performance.now();
  execFileSync("rsync", ["-a", "--fsync", `${from}/`, `${to}/`]);
  return (performance.now() - began) / 1_000;
}

function ratio(tookS: number, peerS: number | undefined): string {
  if (peerS === undefined) return "no rsync here";
  return `${(tookS / peerS).toFixed(1)} × rsync -a --fsync (${peerS.toFixed(1)} s)`;
}
