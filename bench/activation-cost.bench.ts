// What an activation costs, from the customer's PUT to the host's receipt at central: sites of 10,000 and 32,000 files, all new, one file changed, all
// changed. Two real agents under the real central: one imports, so that the other has to fetch what it serves. Beside it rsync of the same tree over
// loopback, and a full copy, both until the disk has them.

import Sqlite from "better-sqlite3";
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { ReleaseRig } from "../test/support/release-rig.ts";
import { until } from "../test/support/until.ts";
import { VersionedSite } from "../test/support/versioned-site.ts";
import { Figures, percentile } from "./support/figures.ts";
import { RsyncPeer } from "./support/rsync-peer.ts";

/** Activations with one changed file: the middle of them is told, and the slowest. */
const changesOfOne = 7;
const receiptWithinMs = 300_000;
/** PUT to receipt with one file of 10,000 changed. */
const oneChangedMs = 300;

type Cost = { readonly tookMs: number; readonly files: number; readonly bytes: number };

export async function run(say: (line: string) => void): Promise<void> {
  const figures = new Figures(say);
  await measure(10_000, figures, oneChangedMs);
  await measure(32_000, figures);
  if (figures.missed.length > 0) say(`missed: ${figures.missed.join("; ")}`);
}

async function measure(files: number, figures: Figures, oneMostMs?: number): Promise<void> {
  const last = changesOfOne + 2;
  // One file changes from version to version, another one each time; with the last version all do.
  const site = new VersionedSite(files, (no, version) => version === last || no === version * 37);
  await using rig = await ReleaseRig.open({ importWithinMs: 600_000 });
  const hasRsync = spawnSync("rsync", ["--version"]).status === 0;
  await using peer = hasRsync ? await RsyncPeer.start(rig.views) : undefined;
  await rig.edge.startAgent();
  const bench = { rig, site, peer, figures };
  figures.head(`${files.toLocaleString("en")} files`);
  const first = await step(bench, 1);
  tell(bench, "all new", [first]);
  const ones: Step[] = [];
  for (let version = 2; version < last; version++) ones.push(await step(bench, version));
  tell(bench, "one changed", ones, oneMostMs);
  const moved = ones.map(({ cost }) => cost.files);
  figures.add("  files moved, at most", Math.max(...moved), "", { most: 1 });
  figures.add("  files moved, at least", Math.min(...moved), "", { least: 1 });
  tell(bench, "all changed", [await step(bench, last)]);
}

type Bench = {
  readonly rig: ReleaseRig;
  readonly site: VersionedSite;
  readonly peer: RsyncPeer | undefined;
  readonly figures: Figures;
};
type Step = { readonly cost: Cost; readonly rsyncMs: number; readonly copyMs: number };

async function step({ rig, site, peer }: Bench, version: number): Promise<Step> {
  const id = await rig.publish(`v${version}`, site.change(version));
  const cost = await activate(rig, id);
  // The tree is what was just activated; each writes to the disk what the agent wrote.
  return {
    cost,
    rsyncMs: peer?.syncMs() ?? 0,
    copyMs: copyMs(rig.views, join(rig.edge.dir, "copy")),
  };
}

/** By central's own note of the receipt; asking for it again and again would be in the way. */
async function activate(rig: ReleaseRig, id: number): Promise<Cost> {
  const before = await received(rig);
  using store = new Store(join(rig.edge.dir, "central", "central.db"));
  const beganMs = Date.now();
  await rig.activate(id);
  const at = await until(
    `the receipt of version ${id}`,
    () => store.receivedAt(rig.siteId, id),
    receiptWithinMs,
  );
  const after = await received(rig);
  return {
    tookMs: at - beganMs,
    files: after.blobs - before.blobs - 1 - (before.blobs === 0 ? 1 : 0), // Manifest; devlove file.
    bytes: after.bytes - before.bytes,
  };
}

class Store implements Disposable {
  readonly #db: Sqlite.Database;

  constructor(path: string) {
    this.#db = new Sqlite(path, { readonly: true });
  }

  /** Undefined: there is none yet. */
  receivedAt(siteId: number, viewsetId: number): number | undefined {
    const row = this.#db
      .prepare<[number, number], { phase: string; detail: string; at: string }>(
        `SELECT phase, detail, when_received AS at FROM receipts JOIN viewset_deployments
         USING (deployment_site_id, seq) WHERE deployment_site_id = ? AND viewset_id = ?`,
      )
      .get(siteId, viewsetId);
    if (row === undefined) return undefined;
    if (row.phase !== "applied") throw new Error(`${row.phase}: ${row.detail}`);
    return Date.parse(row.at);
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}

async function received(rig: ReleaseRig): Promise<{ blobs: number; bytes: number }> {
  const url = `http://127.0.0.1:${rig.edge.ports.metrics}/metrics/deployment`;
  const text = await (await fetch(url)).text();
  const of = (what: string): number => {
    const name = `accel_agent_viewset_${what}_total`;
    const line = new RegExp(`^${name}\\{[^}]*direction="received"[^}]*\\} (\\d+)`, "m").exec(text);
    return Number(line?.[1] ?? 0);
  };
  return { blobs: of("blobs"), bytes: of("blob_bytes") };
}

/** Anew each time: a copy knows no difference. */
function copyMs(from: string, to: string): number {
  execFileSync("rm", ["-rf", to]);
  const began = performance.now();
  execFileSync("cp", ["-a", from, to]);
  execFileSync("sync", ["-f", to]);
  return performance.now() - began;
}

function tell({ figures, peer }: Bench, what: string, steps: readonly Step[], most?: number): void {
  const middle = (of: (one: Step) => number): number => percentile(steps.map(of), 0.5);
  const tookMs = middle(({ cost }) => cost.tookMs);
  const rsyncMs = middle((one) => one.rsyncMs);
  const copy = middle((one) => one.copyMs);
  const beside =
    peer === undefined
      ? "no rsync here"
      : `${(tookMs / rsyncMs).toFixed(2)} × rsync over loopback (${Math.round(rsyncMs)} ms)`;
  const more = `${beside}, ${(tookMs / copy).toFixed(2)} × full copy (${Math.round(copy)} ms)`;
  figures.add(
    `${what}: PUT to receipt`,
    tookMs,
    "ms",
    most === undefined ? undefined : { most },
    more,
  );
  if (steps.length > 1)
    figures.add("  the slowest", Math.max(...steps.map(({ cost }) => cost.tookMs)), "ms");
  figures.add(
    "  bytes moved",
    middle(({ cost }) => cost.bytes),
    "B",
  );
}
