// Where the time of a request goes: V8's samples of every thread of the agent, by folder of the sources, and by function. Time on the processor that is in no JavaScript (the
// kernel, garbage, epoll) has lines of its own.

import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

type Profile = {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
    };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
  readonly startTime: number;
};

const root = join(import.meta.dirname, "../..");
const linesMax = 40;
/** A thread in one of these waits, for events or for the disk: samples go by the clock, and what is told is the processor. */
const waits: ReadonlySet<string> = new Set(["(idle)", "fdatasync", "fsync", "rename", "wait"]);

/** Lines such as "3.2 µs  src/agent/cache/worker", the most expensive first; then those of functions. `us`: what a request took in all. */
export function profileOf(
  dir: string,
  span: { readonly fromUs: number; readonly toUs: number },
  us: number,
): readonly string[] {
  return [...sumsBy(placeOf, dir, span, us), "", ...sumsBy(functionOf, dir, span, us)];
}

function sumsBy(
  placeOf: (frame: Profile["nodes"][number]["callFrame"]) => string | undefined,
  dir: string,
  { fromUs, toUs }: { readonly fromUs: number; readonly toUs: number },
  us: number,
): readonly string[] {
  const sums = new Map<string, number>();
  for (const name of readdirSync(dir)) {
    if (!name.endsWith(".cpuprofile")) continue;
    const profile = JSON.parse(readFileSync(join(dir, name), "utf8")) as Profile; // As Node wrote it.
    const places = new Map(profile.nodes.map(({ id, callFrame }) => [id, placeOf(callFrame)]));
    let at = profile.startTime;
    for (const [no, sample] of profile.samples.entries()) {
      const delta = profile.timeDeltas[no] ?? 0;
      at += delta;
      const place = places.get(sample);
      if (place === undefined || at < fromUs || at > toUs) continue;
      sums.set(place, (sums.get(place) ?? 0) + delta);
    }
  }
  const all = [...sums.values()].reduce((sum, one) => sum + one, 0);
  return [...sums]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, linesMax)
    .map(
      ([place, sum]) =>
        `${((sum / all) * us).toFixed(1).padStart(8)} µs ${((sum / all) * 100).toFixed(1).padStart(6)} %  ${place}`,
    );
}

function functionOf(frame: Profile["nodes"][number]["callFrame"]): string | undefined {
  const { functionName, url, lineNumber } = frame;
  if (placeOf(frame) === undefined) return undefined;
  return url === "" ? functionName : `${functionName} ${url.split("/").at(-1)}:${lineNumber + 1}`;
}

/** The folder that a function lies in; undefined where the thread waits. */
function placeOf({ functionName, url }: Profile["nodes"][number]["callFrame"]): string | undefined {
  if (waits.has(functionName)) return undefined;
  if (url.startsWith("node:")) return url.split("/")[0];
  if (!url.startsWith("file:")) return functionName === "" ? "native code" : functionName;
  const path = relative(root, new URL(url).pathname);
  const modules = path.split("node_modules/").at(-1);
  return path.includes("node_modules/")
    ? `package ${modules?.split("/")[0]}`
    : path.slice(0, path.lastIndexOf("/"));
}
