// How long it takes from a fault of an origin or of central to its warning, to an alert that fires in a real Prometheus with the rules that are shipped, and
// to its end. First nothing is wrong for some minutes: nothing may fire. alerts-host.bench.ts makes the faults of a host.
//
//   npm run bench -- alerts [--calm MINUTES] [--only-calm]

import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Figures } from "./support/figures.ts";
import { comesAbout, WatchedEdge } from "./support/watched-edge.ts";

const withinMs = 15 * 60_000;
const secondMs = 1_000;

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      calm: { type: "string", default: "3" },
      "only-calm": { type: "boolean", default: false },
    },
  });
  const figures = new Figures(say);
  await using watched = await WatchedEdge.open();

  figures.head(`${values.calm} minutes of normal work`);
  const calm = await seenMeanwhile(watched, Number(values.calm) * 60_000);
  figures.add("alerts that fired", calm.fired.size, "", { most: 0 }, [...calm.fired].join(" "));
  // A scrape that failed once, on a busy machine, is seen here.
  figures.add("alerts that waited", calm.waited.size, "", undefined, [...calm.waited].join(" "));
  const warnings = "warnings of severity warning or error";
  figures.add(warnings, calm.warnings.size, "", { most: 0 }, [...calm.warnings].join(" "));

  for (const fault of values["only-calm"] ? [] : faults) {
    figures.head(fault);
    const began = performance.now();
    const since = (): number => (performance.now() - began) / secondMs;
    await breakIt(watched, fault);
    const alert = fault === "central is gone" ? "AccelAgentNotConnected" : "AccelOriginFailing";
    const code = fault === "central is gone" ? "central_unreachable" : "origin_failing";
    await until(async () => (await watched.codes()).includes(code));
    figures.add("warned after", since(), "s");
    await until(async () => (await watched.alerts("firing")).includes(alert));
    figures.add(`${alert} fires after`, since(), "s");
    const mended = performance.now();
    await mend(watched);
    await until(async () => !(await watched.codes()).includes(code));
    figures.add("mended: the warning ends after", (performance.now() - mended) / secondMs, "s");
    await until(async () => (await watched.alerts("firing")).length === 0);
    figures.add("mended: no alert fires after", (performance.now() - mended) / secondMs, "s");
  }
  if (figures.missed.length > 0) throw new Error(`missed: ${figures.missed.join(", ")}`);
}

const faults = ["the origin is gone", "the origin answers 503", "central is gone"] as const;
type Fault = (typeof faults)[number];

type Seen = {
  readonly fired: ReadonlySet<string>;
  readonly waited: ReadonlySet<string>;
  readonly warnings: ReadonlySet<string>;
};

/** Whatever was seen within the time, and not only at its end. */
async function seenMeanwhile(watched: WatchedEdge, forMs: number): Promise<Seen> {
  const [fired, waited, warnings] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const end = performance.now() + forMs; performance.now() < end; await sleep(secondMs)) {
    for (const name of await watched.alerts("firing")) fired.add(name);
    for (const name of await watched.alerts("pending")) waited.add(name);
    for (const code of await watched.codes("warning|error")) warnings.add(code);
  }
  return { fired, waited, warnings };
}

async function breakIt({ edge, origin }: WatchedEdge, fault: Fault): Promise<void> {
  if (fault === "central is gone") await edge.central.kill();
  else await origin.become(fault === "the origin is gone" ? "gone" : "refusing");
}

async function mend({ edge, origin }: WatchedEdge): Promise<void> {
  await origin.become("good");
  if (edge.central.ended) await edge.central.restart();
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  if (!(await comesAbout(isSo, withinMs)))
    throw new Error("it did not come about within 15 minutes");
}
