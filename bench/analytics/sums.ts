// Whether the numbers are what the ledger says, span by span and at every fineness, also where batches come late or twice, and where files of days go or come back.

import { copyFileSync, existsSync, readdirSync, rmSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { bucketSeconds } from "../../src/core/analytics/time-buckets.ts";
import type { Figures } from "../support/figures.ts";
import type { NumbersEdge } from "./edge.ts";
import type { Sender } from "./fill.ts";
import type { Batch, Sums } from "./traffic.ts";

const daySeconds = 86_400;
const suffixes = ["", "-wal", "-shm"] as const;
const none = { requests: 0, hits: 0, bytes: 0, saved_bytes: 0, counts: {} };
/** Days back that are asked by each fineness: what is kept of it, and no more than there was. */
const daysBack = { minute: 2, hour: 60, day: 89 } as const;

export async function holdSums(figures: Figures, edge: NumbersEdge): Promise<void> {
  figures.head(
    "sums of every span by minute, hour and day, by status, cache and reason: spans that differ from the ledger",
  );
  const hold = async (when: string): Promise<void> => {
    for (const sender of edge.senders) {
      const { differ, requests } = await differing(edge, sender);
      const more = `${requests.toLocaleString("en")} requests`;
      figures.add(`${when}: ${sender.traffic.domain}`, differ, "spans", { most: 0 }, more);
    }
  };
  await hold("before");
  await holdTops(figures, edge);

  const nowS = Math.floor(Date.now() / 1e3);
  const late = (agoS: number): Batch =>
    edge.slow.traffic.batch(500, nowS - agoS, nowS - agoS + 3_000);
  for (const agoS of [20 * 3_600, 10 * daySeconds, 50 * daySeconds, 80 * daySeconds])
    await edge.send(edge.slow, late(agoS));
  await hold("batches that are 20 hours, 10, 50 and 80 days late");

  const again = late(4 * daySeconds);
  await edge.send(edge.slow, again);
  await edge.resend(edge.slow, again);
  await hold("a batch that is sent twice");

  const logs = join(edge.stateDir, "logs");
  const days = readdirSync(logs).filter((name) => /^[\d-]{10}\.db$/.test(name));
  const middle = join(logs, days[Math.floor(days.length / 2)] ?? "");
  copy(middle, `${middle}.kept`);
  for (const suffix of suffixes) if (existsSync(middle + suffix)) unlinkSync(middle + suffix);
  await hold("a day file removed in the middle, central running");
  await edge.stop();
  await edge.start();
  await hold("and central started again");

  await edge.stop();
  copy(`${middle}.kept`, middle);
  await edge.start();
  await hold("that file restored");

  await edge.stop();
  const today = join(logs, days.at(-1) ?? "");
  copy(today, `${today}.kept`);
  await edge.start();
  const lost = late(daySeconds);
  await edge.send(edge.slow, lost);
  await hold("a batch after a copy of today's file was made");
  await edge.stop();
  copy(`${today}.kept`, today);
  await edge.start();
  edge.slow.ledger.takeBack(lost);
  await hold("the older copy restored, which lacks that batch");
  await edge.resend(edge.slow, lost);
  edge.slow.ledger.add(lost);
  await hold("that batch sent again");
}

/** Copies a file of a day with what belongs to it; the copy is another file than what was there. */
function copy(from: string, to: string): void {
  for (const suffix of suffixes) {
    rmSync(to + suffix, { force: true });
    if (existsSync(from + suffix)) copyFileSync(from + suffix, to + suffix);
  }
}

async function differing(
  edge: NumbersEdge,
  { traffic: { domain }, ledger }: Sender,
): Promise<{ readonly differ: number; readonly requests: number }> {
  let [differ, requests] = [0, 0];
  for (const step of ["minute", "hour", "day"] as const)
    for (const by of ["status", "cache", "reason"] as const) {
      const nowS = Math.floor(Date.now() / 1e3);
      const sinceS = nowS - daysBack[step] * daySeconds;
      const untilS = nowS + 60; // Live batches may lie a little ahead of what was asked.
      const query = `step=${step}&by=${by}&since=${sinceS}&until=${untilS}`;
      const answer = await edge.numbers(domain, query);
      if (!answer.complete) throw new Error(`${query}: not complete`);
      const spans = ledger.spans(bucketSeconds[step], by);
      for (const { at, ...told } of answer.series)
        if (!isSame(told, spans.get(at) ?? none)) differ++;
      if (step === "day") requests = answer.totals.requests;
    }
  return { differ, requests };
}

function isSame(
  told: Omit<Sums, "counts"> & { readonly counts?: Sums["counts"] },
  kept: Sums,
): boolean {
  const { counts = {} } = told;
  const names = new Set([...Object.keys(counts), ...Object.keys(kept.counts)]);
  return (
    told.requests === kept.requests &&
    told.hits === kept.hits &&
    told.bytes === kept.bytes &&
    told.saved_bytes === kept.saved_bytes &&
    [...names].every((name) => (counts[name] ?? 0) === (kept.counts[name] ?? 0))
  );
}

/** The true count of each path lies between what the list says at least and at most. */
async function holdTops(figures: Figures, edge: NumbersEdge): Promise<void> {
  for (const { traffic, ledger } of edge.senders) {
    const { domain } = traffic;
    const nowS = Math.floor(Date.now() / 1e3);
    const query = `step=day&by=top_paths&since=${nowS - 89 * daySeconds}&until=${nowS}`;
    const { tops = [] } = await edge.numbers(domain, query);
    const paths = ledger.paths();
    const wrong = tops.filter(({ key, requests, error }) => {
      const count = paths.get(key) ?? 0;
      return count > requests || count < requests - error;
    });
    const error = Math.max(...tops.slice(0, 10).map((one) => one.error / one.requests));
    const more = `of ${tops.length}; the first ten are at most ${(100 * error).toFixed(1)} % too high`;
    figures.add(
      `most asked paths outside their bounds: ${domain}`,
      wrong.length,
      "",
      { most: 0 },
      more,
    );
  }
}
