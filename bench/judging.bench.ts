// Central beside the judgement of a manifest: how long a plain read of the customer API takes while an import of a million files ends, against the same
// read of a central that has nothing else to do. `npm run bench -- judging [FILES]`

import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { canonicalJson } from "../src/core/journal/canonical-json.ts";
import {
  seedSite,
  startImport,
  startAgentSide,
  type AgentSide,
} from "../test/support/agent-side.ts";
import { Figures } from "./support/figures.ts";

const filesDefault = 1_000_000;
const aloneMs = 3_000;
const pauseMs = 2;
const p99MostMs = 100;

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const files = Number(args[0] ?? filesDefault);
  await using side = await startAgentSide();
  const figures = new Figures(say);
  const { receipt, bytes } = await importOf(side, files);
  figures.head(`a manifest of ${files} files, ${(bytes / 1e6).toFixed(0)} MB`);
  const aloneUntil = performance.now() + aloneMs;
  const alone = await readsWhile(side, () => performance.now() < aloneUntil);
  let isJudged = false;
  const began = performance.now();
  const judged = receipt().finally(() => (isJudged = true));
  const beside = await readsWhile(side, () => !isJudged);
  await judged;
  const tookS = (performance.now() - began) / 1_000;
  const row = await side.store.selectFrom("imports").select(["state", "error"]).executeTakeFirst();
  if (row?.state !== "failed" || row.error?.includes("were not uploaded") !== true)
    throw new Error(`the import ended otherwise than it should: ${JSON.stringify(row)}`);
  figures.add("the judgement", tookS, "s");
  figures.add("reads beside it", beside.length, "");
  figures.add("p99 of a read, alone", quantile(alone, 0.99), "ms");
  figures.add("p99 of a read, beside it", quantile(beside, 0.99), "ms", { most: p99MostMs });
  figures.add("the slowest read beside it", quantile(beside, 1), "ms");
  if (figures.missed.length > 0) say(`missed: ${figures.missed.join("; ")}`);
}

/** Judged whole: central has none of the files, which it tells when it has looked for each. */
async function importOf(side: AgentSide, files: number) {
  const seeded = await seedSite(side.store);
  const { siteId } = seeded;
  const seq = await startImport(side, seeded, { id: "i1", name: "large" });
  const entries = Array.from({ length: files }, (_, no) => ({
    path: `Docs/section-${no % 1_000}/chapter-${no % 97}/page-number-${no}.html`,
    sha256: createHash("sha256").update(String(no)).digest("hex"),
    size: no,
    mime: "text/html",
  }));
  const devlove = { schema: "devlove/1", sha256: await side.blobs.put(Buffer.from("{}")) };
  const text = Buffer.from(canonicalJson({ devlove, files: entries }));
  const manifest = await side.blobs.put(text);
  const receipt = { seq, phase: "applied", detail: { manifest }, took_ms: 5 } as const;
  return {
    bytes: text.length,
    receipt: async () => side.agentStore.saveReceipts(siteId, "instance-1", [receipt]),
  };
}

/** One after another, in ms. */
async function readsWhile(side: AgentSide, goesOn: () => boolean): Promise<readonly number[]> {
  const times: number[] = [];
  while (goesOn()) {
    const began = performance.now();
    await (await fetch(`${side.url}/journal`)).arrayBuffer();
    times.push(performance.now() - began);
    await sleep(pauseMs);
  }
  return times.sort((a, b) => a - b);
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}
