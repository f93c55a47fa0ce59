// Numbers of requests at size: 90 days at 1 request a second of one domain and a day at 100 of another, through central's own log threads with the retention
// of the settings; then the real central as a process is asked everything that the console asks, cold and warm, while requests go on at that rate. And whether
// the sums are those of the bench's own ledger, also after late and repeated batches and after files of days went and came back.
// `--short`: a run of a minute or two, of 3 days and 10 minutes.

import { loadavg } from "node:os";
import { NumbersEdge, type Timed } from "./analytics/edge.ts";
import { fill } from "./analytics/fill.ts";
import { measureIntake } from "./analytics/intake-cost.ts";
import { addStorage } from "./analytics/storage.ts";
import { holdSums } from "./analytics/sums.ts";
import { views } from "./analytics/views.ts";
import { cpuOf, cpuSince } from "./serving/cpu.ts";
import { Figures, percentile } from "./support/figures.ts";

const viewMs = 300;
const dayS = 86_400;

type Size = {
  readonly days: number;
  readonly fastS: number;
  readonly asks: number;
  readonly coldStarts: number;
  readonly costRecords: number;
  readonly costRounds: number;
};
const whole: Size = {
  days: 90,
  fastS: dayS,
  asks: 40,
  coldStarts: 40,
  costRecords: 100_000,
  costRounds: 9,
};
const short: Size = {
  days: 3,
  fastS: 600,
  asks: 5,
  coldStarts: 2,
  costRecords: 20_000,
  costRounds: 3,
};

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const size = args.includes("--short") ? short : whole;
  const figures = new Figures(say);
  const sayLoad = (): void => {
    const load = loadavg().map((processes) => processes.toFixed(1));
    say(`load of the host over 1, 5 and 15 minutes: ${load.join(", ")}`);
  };
  await using edge = await NumbersEdge.prepare();
  await fillAll(figures, edge, size, say);
  addStorage(figures, edge.stateDir);
  await edge.start();
  const live = new AbortController();
  const sending = edge.sendLive(live.signal);
  // Who fails says so when it is waited for.
  sending.catch(() => undefined);
  try {
    await askWarm(figures, edge, size.asks);
    sayLoad();
  } finally {
    live.abort();
    await sending;
  }
  await askCold(figures, edge, size.coldStarts);
  sayLoad();
  await holdSums(figures, edge);
  sayLoad();
  measureIntake(figures, size.costRecords, size.costRounds);
  sayLoad();
  say(figures.missed.length === 0 ? "every limit met" : `missed: ${figures.missed.join("; ")}`);
  if (figures.missed.length > 0) process.exitCode = 1;
}

async function fillAll(
  figures: Figures,
  edge: NumbersEdge,
  { days, fastS }: Size,
  say: (line: string) => void,
): Promise<void> {
  const untilS = Math.floor(Date.now() / 1e3);
  const slowSinceS = (Math.floor(untilS / dayS) - (days - 1)) * dayS;
  figures.head(
    `${days} days at 1 a second, ${fastS / 60} minutes at 100, folded and removed by the day`,
  );
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  const { slow, fast, stateDir } = edge;
  const fastSinceS = untilS - fastS;
  const { records } = await fill({ stateDir, slow, fast, slowSinceS, fastSinceS, untilS, say });
  const { user, system } = process.cpuUsage(cpu);
  figures.add("records", records, "");
  figures.add("taken in and folded in", (performance.now() - began) / 1e3, "s");
  figures.add("processor time, making them included", (user + system) / records, "µs/record");
}

const nowS = (): number => Math.ceil(Date.now() / 15e3) * 15;

async function askWarm(figures: Figures, edge: NumbersEdge, asks: number): Promise<void> {
  for (const { traffic } of edge.senders) {
    figures.head(
      `${traffic.domain}, each ${asks} times, warm, while both domains are asked on at their rates: p95`,
    );
    for (const { name, query } of views) {
      await edge.ask(traffic.domain, query(nowS()));
      const timed: Timed[] = [];
      const cpu = cpuOf(edge.pid);
      for (let left = asks; left > 0; left--)
        timed.push(await edge.ask(traffic.domain, query(nowS())));
      const cpuMs = cpuSince(cpu, edge.pid) / 1e3 / asks;
      addTimes(figures, name, timed, `, central's CPU ${cpuMs.toFixed(1)} ms a question`);
    }
  }
}

/** Each question comes to a central that has just been started, in another order at each start: the first one finds nothing in memory. */
async function askCold(figures: Figures, edge: NumbersEdge, starts: number): Promise<void> {
  const questions = edge.senders.flatMap(({ traffic: { domain } }) =>
    views.map((view) => ({ name: `${view.name}, ${domain}`, domain, view })),
  );
  const asked = new Map<string, Timed[]>(questions.map(({ name }) => [name, []]));
  const first: Timed[] = [];
  for (let start = 0; start < starts; start++) {
    await edge.startCold();
    const from = Math.floor((questions.length * start) / starts);
    for (let no = 0; no < questions.length; no++) {
      const { name, domain, view } = questions[(from + no) % questions.length] ?? {};
      if (name === undefined || domain === undefined || view === undefined) continue;
      const timed = await edge.ask(domain, view.query(nowS()));
      asked.get(name)?.push(timed);
      if (no === 0) first.push(timed);
    }
  }
  figures.head(`each once after each of ${starts} starts of central, with no file in memory: p95`);
  addTimes(figures, "the first question after a start, of all kinds", first);
  for (const [name, timed] of asked) addTimes(figures, name, timed);
}

function addTimes(figures: Figures, name: string, timed: readonly Timed[], cpu = ""): void {
  const times = timed.map(({ tookMs }) => tookMs);
  const bytes = Math.max(...timed.map(({ text }) => Buffer.byteLength(text)));
  const more = `p50 ${percentile(times, 0.5).toFixed(1)} ms, most ${Math.max(...times).toFixed(1)} ms, ${bytes.toLocaleString("en")} B${cpu}`;
  figures.add(name, percentile(times, 0.95), "ms", { most: viewMs }, more);
}
