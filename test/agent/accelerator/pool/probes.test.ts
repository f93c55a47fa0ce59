// Probes through real threads: of what is staged and not yet served, of what is in force in every worker, and of a state that workers die of.

import { createHash } from "node:crypto";
import { mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { MessageChannel } from "node:worker_threads";
import { expect, test } from "vitest";
import type { BadBlob } from "../../../../src/agent/accelerator/pool/worker-messages.ts";
import type { WorkerPool } from "../../../../src/agent/accelerator/pool/workers.ts";
import { Health } from "../../../../src/base/health.ts";
import { silentLog } from "../../../../src/base/log.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import { blobPath } from "../../../../src/core/blob-path.ts";
import { parseSha256 } from "../../../../src/core/ids.ts";
import { encodeManifestTable, ManifestTable } from "../../../../src/core/serving/manifest-table.ts";
import {
  planProbes,
  probeFault,
  type ProbeAnswer,
} from "../../../../src/core/serving/plan-probes.ts";
import type { ServingState } from "../../../../src/core/serving/serving-state.ts";
import { startWorkers } from "../../../support/start-workers.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { host, stateOf } from "../edge.ts";
import type { TestParts } from "../worker-entry.ts";

const count = 2;

async function start(blobsDir: string, onBadBlob: (blob: BadBlob) => void): Promise<WorkerPool> {
  return startWorkers({
    count,
    entry: new URL("../worker-entry.ts", import.meta.url),
    openParts: () => {
      const { port2 } = new MessageChannel();
      const data: TestParts = { records: port2, failing: false, startMs: 0 };
      return { data, transfer: [port2] };
    },
    listen: { host: "127.0.0.1", port: 0 },
    proxies: { trusted: [], forwardedHeader: "x-forwarded-for", proxyProtocol: "off" },
    defaultDomain: null,
    blobsDir,
    onBadBlob,
    drainGraceMs: 1_000,
    stuckMs: 10_000,
    random: () => 0,
    registry: new Registry(),
    health: new Health(() => new Date()),
    log: silentLog(),
    stop: new AbortController().signal,
  });
}

const digestOf = (content: string): string => createHash("sha256").update(content).digest("hex");

/** Paths with their contents: stored as blobs, and the manifest's table. */
function storeSite(blobsDir: string, site: Readonly<Record<string, string>>) {
  const files = Object.entries(site).map(([path, content]) => {
    const sha256 = parseSha256(digestOf(content));
    if (sha256 === undefined) throw new Error("no digest");
    const blob = blobPath(blobsDir, sha256);
    mkdirSync(dirname(blob), { recursive: true });
    writeFileSync(blob, content);
    return { path, sha256, size: content.length, mime: "text/html", blob };
  });
  return { table: encodeManifestTable(files), blobOf: new Map(files.map((f) => [f.path, f.blob])) };
}

const site = { "index.html": "hello", "big.bin": "x".repeat(200_000), "z.txt": "last" };

function planOf({ domains: [domain] }: ServingState) {
  return planProbes(domain?.hosts ?? [], "ab".repeat(32), (table) => new ManifestTable(table));
}

/** What is wrong with what one worker said. */
function faultsOf(state: ServingState, answers: readonly ProbeAnswer[] | undefined) {
  return planOf(state)
    .map((probe, i) => probeFault(probe, answers?.[i]))
    .filter((fault) => fault !== undefined);
}

test("a staged version answers as its manifest says, unless a file is missing, cut short or damaged; then nothing flips", async () => {
  using dir = tempDir();
  const blobsDir = join(dir.path, "blobs");
  const { table, blobOf } = storeSite(blobsDir, site);
  const told = new Set<string>();
  await using pool = await start(blobsDir, ({ sha256 }) => told.add(sha256));
  const publish = async (): Promise<readonly string[]> => {
    let faults: readonly string[] = [];
    let state = stateOf(0, {});
    await pool.publish(
      (version) => (state = stateOf(version, {}, { kind: "manifest", table, prefix: "" })),
      undefined,
      async (ask) => {
        faults = faultsOf(state, await ask(planOf(state)));
        if (faults.length > 0) throw new Error("no");
      },
    );
    return faults;
  };
  expect(await publish()).toEqual([]);
  const { version } = pool.status();

  truncateSync(blobOf.get("big.bin") ?? "", 100);
  rmSync(blobOf.get("index.html") ?? "");
  await expect(publish()).rejects.toThrow("no");
  expect(pool.status().version).toBe(version);

  // Every worker says so of what is in force: a trial sees it.
  const state = stateOf(version, {}, { kind: "manifest", table, prefix: "" });
  const each = await pool.probe(planOf(state));
  expect(each).toHaveLength(count);
  for (const answers of each)
    expect(faultsOf(state, answers)).toEqual([
      expect.stringContaining(`${host} /: ENOENT`),
      expect.stringMatching(/"big\.bin": .* is damaged/),
    ]);
  expect(told).toEqual(new Set([digestOf(site["index.html"]), digestOf(site["big.bin"])]));

  // Of the right size all the same: what is read whole is known by its digest.
  told.clear();
  writeFileSync(blobOf.get("z.txt") ?? "", "LAST");
  for (const answers of await pool.probe(planOf(state)))
    expect(faultsOf(state, answers)).toContain(`${host} "z.txt" is damaged on this disk`);
  expect(told).toContain(digestOf(site["z.txt"]));
}, 180_000);
