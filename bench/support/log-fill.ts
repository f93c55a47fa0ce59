// Twenty million request records in central's day files, written by the store itself: sites with busy, quiet, rare and silent domains, over four days.

import { LogStore } from "../../src/central/agents/log-store.ts";
import { batchRecordsMax } from "../../src/wire/request-log.ts";

export type FillSite = { readonly id: number; readonly domains: readonly string[] };
export type Filled = {
  readonly records: number;
  readonly cpuS: number;
  readonly wallS: number;
  readonly bytes: number;
};

const rareEvery = 500_000;

/** `dayStarts`: in order; each day gets its share, spread over its 24 hours, but for the last, whose records lie before `nowMs`. */
export function fillLogs(
  directory: string,
  sites: readonly FillSite[],
  records: number,
  dayStarts: readonly number[],
  nowMs: number,
): Filled {
  using store = new LogStore(directory, (path, error) => {
    throw new Error(`${path} is broken`, { cause: error });
  });
  const perDay = Math.ceil(records / dayStarts.length / batchRecordsMax) * batchRecordsMax;
  const seqs = new Map<number, number>();
  let [cpuUs, wallMs, total] = [0, 0, 0];
  for (const start of dayStarts) {
    const end = Math.min(start + 86_400_000, nowMs);
    for (let done = 0; done < perDay; done += batchRecordsMax) {
      const site = sites[(total / batchRecordsMax) % sites.length];
      if (site === undefined) throw new Error("there are no sites");
      const atMs = start + ((end - start) * done) / perDay;
      const stepMs = (end - start) / perDay;
      const body = Buffer.from(batchOf(site, total, atMs, stepMs));
      const firstSeq = (seqs.get(site.id) ?? 0) + 1;
      const lastSeq = firstSeq + batchRecordsMax - 1;
      seqs.set(site.id, lastSeq);
      total += batchRecordsMax;
      const request = {
        siteId: site.id,
        lane: { epoch: "00000000000000f1", no: 1 },
        firstSeq,
        lastSeq,
        encoding: "identity" as const,
        body,
        nowMs: start + 1,
      };
      const [cpu, wall] = [process.cpuUsage(), performance.now()];
      const [outcome] = store.append([request]);
      const used = process.cpuUsage(cpu);
      cpuUs += used.user + used.system;
      wallMs += performance.now() - wall;
      if (outcome?.kind !== "committed") throw new Error(`not committed: ${outcome?.kind}`);
    }
  }
  const { bytes } = store.stats();
  return { records: total, cpuS: cpuUs / 1e6, wallS: wallMs / 1_000, bytes };
}

export function batchOf(site: FillSite, first: number, atMs: number, stepMs: number): string {
  let text = "";
  for (let at = 0; at < batchRecordsMax; at++) {
    const no = first + at;
    const when = ((atMs + at * stepMs) / 1_000).toFixed(6);
    text += lineOf(domainOf(site, no), no, when);
  }
  return text;
}

/** Half of the records are the first domain's, a quarter the second's; the one before the last has a handful, the last none. */
function domainOf({ domains }: FillSite, no: number): string {
  const last = domains.length - 2;
  if (no % rareEvery === 0) return domains[last] ?? "";
  let at = 0;
  while (at < last - 1 && ((no * 2_654_435_761) >>> (at + 3)) % 2 === 1) at++;
  return domains[at] ?? "";
}

function lineOf(domain: string, no: number, when: string): string {
  return (
    `{"connection":${no},"response_status":200,"request_method":"GET","uri_path":"/articles/${no}?page=2",` +
    `"backend_time":0.0123,"when":${when},"authority":"${domain}","domain":"${domain}","client_ip":"192.0.2.${no % 250}",` +
    `"bytes_sent":${1_000 + (no % 50_000)},"duration":0.0156,"cache":"miss","verdict":"allow","bot":null,` +
    `"user_agent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}\n`
  );
}
