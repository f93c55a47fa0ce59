// A list of a million ranges through the customer API, to a real central with two agents: until it is stored and until every agent judges by it, what central takes of
// memory, and how long others wait meanwhile; then the same list with few changes, and one with a fault in its last line.
//
//   npm run bench -- bot-lists [--ranges N]

import { readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { CustomerScript, domain } from "../test/support/customer-script.ts";
import { Edge } from "../test/support/edge.ts";
import { startFurtherAgent, type Site } from "../test/support/further-agent.ts";
import { startOrigin } from "../test/support/origin.ts";
import { until } from "../test/support/until.ts";
import { residentMiB } from "./serving/cpu.ts";
import { Figures, percentile } from "./support/figures.ts";

const path = "/bots/bad/Scraper/addresses/";
const limits = { memoryMiB: { most: 300 }, othersMs: { most: 100 } };

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { ranges: { type: "string", default: "1000000" } },
  });
  const count = Number(values.ranges);
  const figures = new Figures(say);
  await using origin = await startOrigin();
  await using edge = await Edge.prepare();
  // As its unit has it: without the options V8 keeps 100 MiB more of young garbage.
  process.env["NODE_OPTIONS"] = unitOptions();
  await edge.startCentral();
  delete process.env["NODE_OPTIONS"];
  const script = new CustomerScript(edge, origin.url, "lists");
  await script.enrol();
  await edge.startAgent();
  for (const { run: step } of script.steps().slice(0, 2)) await step();
  const site = (await edge.api.get(`/deployment-site/${script.siteId}/`)).body as Site;
  await using _further = await startFurtherAgent(edge, site, "edge-two");
  const other = await edge.api.post("/trial/", { username: "other" });
  const otherToken = (other.body as { readonly token: string }).token;
  const before = residentMiB(edge.central.pid);

  const list = Array.from({ length: count }, (_, no) => rangeOf(no)).join("\n");
  figures.head(
    `a list of ${count.toLocaleString("en")} ranges, ${(list.length / 1e6).toFixed(1)} MB`,
  );
  const watch = new Watch(edge, otherToken);
  const stored = await put(edge, list);
  figures.add(
    "until it is stored and answered",
    stored.tookMs / 1e3,
    "s",
    undefined,
    watch.told(before),
  );
  figures.add(
    "until every agent judges by it",
    (await inForce(edge)) / 1e3,
    "s",
    undefined,
    "more",
  );
  await watch.end(figures, "others meanwhile", before);

  figures.head("the same list with ten changes");
  const changed = list.replace(
    /^.*\n.*\n.*\n.*\n.*\n/,
    "192.0.2.1\n192.0.2.2\n192.0.2.3\n192.0.2.4\n192.0.2.5\n",
  );
  const again = new Watch(edge, otherToken);
  const second = await put(edge, changed);
  figures.add("until it is stored and answered", second.tookMs / 1e3, "s");
  figures.add(
    "until every agent judges by it",
    (await inForce(edge)) / 1e3,
    "s",
    undefined,
    "more",
  );
  await again.end(figures, "others meanwhile", before);

  figures.head("ten addresses added to it");
  const beganMs = performance.now();
  await edge.api.post(`${path}?domain=${domain}&wait=30`, {
    add: Array.from({ length: 10 }, (_, no) => `198.51.100.${no}`),
  });
  figures.add("until every agent judges by it", performance.now() - beganMs, "ms");

  figures.head("a list with a fault in its last line");
  const faulty = await put(edge, `${list}\nnonsense\n`);
  figures.add(
    "until it is refused",
    faulty.tookMs / 1e3,
    "s",
    undefined,
    faulty.text.slice(0, 120),
  );
  const load = loadavg().map((processes) => processes.toFixed(1));
  say(`load of the host over 1, 5 and 15 minutes: ${load.join(", ")}`);
  say(figures.missed.length === 0 ? "every limit met" : `missed: ${figures.missed.join("; ")}`);
  if (figures.missed.length > 0) process.exitCode = 1;
}

function unitOptions(): string {
  const unit = readFileSync(join(import.meta.dirname, "../systemd/accel-central.service"), "utf8");
  const options = /^Environment="NODE_OPTIONS=([^"]+)"$/m.exec(unit)?.[1];
  if (options === undefined) throw new Error("the unit of central has no NODE_OPTIONS");
  return options;
}

/** Addresses all over, none beside the next. */
function rangeOf(no: number): string {
  const at = (no * 2_654_435_761) >>> 0;
  return `${1 + ((at >>> 24) % 223)}.${(at >>> 16) & 255}.${(at >>> 8) & 255}.${at & 255}`;
}

async function put(
  edge: Edge,
  body: string,
): Promise<{ readonly tookMs: number; readonly text: string }> {
  const beganMs = performance.now();
  const { origin, token } = edge.api;
  const response = await fetch(`${origin}/presentation-api/v1${path}?domain=${domain}`, {
    method: "PUT",
    headers: { authorization: `Token ${token}`, "content-type": "text/plain" },
    body,
  });
  return { tookMs: performance.now() - beganMs, text: await response.text() };
}

/** Milliseconds until all agents have proved the set as it is now. */
async function inForce(edge: Edge): Promise<number> {
  const beganMs = performance.now();
  await until(
    "every agent judges by it",
    async () => {
      const { body } = await edge.api.post(`${path}?domain=${domain}&wait=30`, {
        remove: ["203.0.113.1"],
      });
      const { deployments } = body as {
        readonly deployments: readonly { readonly state: string }[];
      };
      return deployments.every(({ state }) => state === "applied");
    },
    300_000,
  );
  return performance.now() - beganMs;
}

/** Another customer who asks all the time, and central's memory. */
class Watch {
  readonly #edge: Edge;
  readonly #token: string;
  readonly #tookMs: number[] = [];
  readonly #asking: Promise<void>;
  #most = 0;
  #isOver = false;

  constructor(edge: Edge, token: string) {
    this.#edge = edge;
    this.#token = token;
    this.#asking = this.#ask();
  }

  async #ask(): Promise<void> {
    const { origin } = this.#edge.api;
    while (!this.#isOver) {
      const beganMs = performance.now();
      const response = await fetch(`${origin}/presentation-api/v1/domain/`, {
        headers: { authorization: `Token ${this.#token}` },
      });
      await response.text();
      this.#tookMs.push(performance.now() - beganMs);
      this.#most = Math.max(this.#most, residentMiB(this.#edge.central.pid));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** The memory so far. */
  told(before: number): string {
    return `memory so far +${Math.round(this.#most - before)} MiB`;
  }

  async end(figures: Figures, name: string, before: number): Promise<void> {
    this.#isOver = true;
    await this.#asking;
    const most = Math.max(...this.#tookMs);
    const more = `p50 ${percentile(this.#tookMs, 0.5).toFixed(1)} ms, most ${most.toFixed(0)} ms, ${this.#tookMs.length} questions`;
    figures.add(`${name}: p99`, percentile(this.#tookMs, 0.99), "ms", limits.othersMs, more);
    figures.add("central's memory, more than before", this.#most - before, "MiB", limits.memoryMiB);
  }
}
