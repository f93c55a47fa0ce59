// What the way up bears: a backlog of 24 hours at 100 records a second drains from the real agent to the real central, both as processes on this
// machine, while visitors go on at 100 a second. SHIP_RECORDS sets another backlog.

import { readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { Pool } from "undici";
import { callControl } from "../src/base/control-socket.ts";
import { sleep } from "../src/base/wait.ts";
import { Edge } from "../test/support/edge.ts";
import { Figures, percentile } from "./support/figures.ts";
import { fillSpool } from "./support/spool-fill.ts";

const records = Number(process.env["SHIP_RECORDS"] ?? 24 * 3_600 * 100);
const lanes = 2;
const visitsPerS = 100;
const pollMs = 200;
const drainWithinMs = 1_800_000;
const ticksPerS = 100; // USER_HZ of Linux.

export async function run(say: (line: string) => void): Promise<void> {
  const figures = new Figures(say);
  await using edge = await Edge.prepare();
  const directory = join(edge.dir, "agent");
  await edge.startCentral();
  const trial = await edge.api.post("/trial/", { username: "bench", email: "bench@example.com" });
  edge.api.token = (trial.body as { token: string }).token;
  const site = (await edge.api.post("/deployment-site/", { tags: "bench" })).body;
  edge.writeAgentSettings(site as { name16: string; secret16: string }, {
    spool: { max: "16GiB" },
    logs: { canary_interval: "1s" },
  });
  const recordsPerLane = Math.ceil(records / lanes);
  const bytes = fillSpool({ directory, lanes, recordsPerLane, recordsPerFrame: 1 });
  const filled = lanes * recordsPerLane;
  figures.head(
    `${filled.toLocaleString("en")} records (${(bytes / 1e9).toFixed(1)} GB) in ${lanes} lanes wait when the agent starts`,
  );
  await edge.startAgent();
  const drain = await new Drain(edge).run();
  figures.add("shipped and committed", filled / drain.tookS, "records/s", { least: 50_000 });
  figures.add("drained in", drain.tookS, "s");
  figures.add("CPU time of the agent", (drain.agentCpuS / filled) * 1e6, "µs/record");
  figures.add("CPU time of central", (drain.centralCpuS / filled) * 1e6, "µs/record");
  const bothCpuS = drain.agentCpuS + drain.centralCpuS;
  figures.add(
    "with two processors for nothing else, by CPU time",
    (2 * filled) / bothCpuS,
    "records/s",
  );
  figures.head(
    `${drain.liveMs.length.toLocaleString("en")} fresh records meanwhile, from the answer to the commit`,
  );
  figures.add("p50", percentile(drain.liveMs, 0.5) / 1_000, "s");
  figures.add("p99", percentile(drain.liveMs, 0.99) / 1_000, "s");
  figures.add("most", Math.max(0, ...drain.liveMs) / 1_000, "s", { most: 5 });
  figures.add("not committed in the end", drain.visits - drain.liveMs.length, "", { most: 0 });
  figures.head("resident memory of the agent");
  figures.add("when it was ready", drain.rssMbStart, "MB");
  figures.add("most meanwhile", drain.rssMbMost, "MB");
  figures.add("at the end", drain.rssMbEnd, "MB");
  const { accepted, committed, spooled, inMemory, dropped } = drain.balance;
  figures.head("the balance afterwards");
  figures.add("dropped", dropped, "records", { most: 0 });
  figures.add(
    "accepted − committed − spooled − in memory − dropped",
    Math.abs(accepted - committed - spooled - inMemory - dropped),
    "records",
    { most: 0 },
  );
  figures.add("the backlog's records that are not committed", filled - drain.backlogCommitted, "", {
    most: 0,
  });
  const load = loadavg().map((processes) => processes.toFixed(1));
  say(`load of the host over 1, 5 and 15 minutes: ${load.join(", ")}`);
  say(figures.missed.length === 0 ? "every limit met" : `missed: ${figures.missed.join("; ")}`);
}

type Lane = { readonly live: boolean; readonly accepted: number; readonly committed: number };
type Facts = {
  readonly accepted: number;
  readonly committed: number;
  readonly spooled: number;
  readonly in_memory: number;
  readonly dropped: Readonly<Record<string, number>>;
  readonly lanes: readonly Lane[];
};

/** From the agent's start until central has the backlog and every fresh record. */
class Drain {
  readonly #edge: Edge;
  /** When each was answered. */
  readonly #answeredMs: number[] = [];
  readonly #liveMs: number[] = [];

  constructor(edge: Edge) {
    this.#edge = edge;
  }

  async run() {
    const { agent, central } = this.#edge;
    const began = performance.now();
    const [agentCpuS, centralCpuS] = [cpuS(agent.pid), cpuS(central.pid)];
    const rssMbStart = rssMb(agent.pid);
    const stop = new AbortController();
    const visiting = this.#visit(stop.signal);
    let [rssMbMost, tookS] = [0, 0];
    let facts = await this.#facts();
    while (tookS === 0 || facts.spooled + facts.in_memory > 0) {
      if (performance.now() - began > drainWithinMs) throw new Error("the backlog does not drain");
      await sleep(pollMs, stop.signal);
      facts = await this.#facts();
      rssMbMost = Math.max(rssMbMost, rssMb(agent.pid));
      this.#noteLive(facts);
      // Sealed lanes vanish when they are done: then only live ones are left.
      if (tookS === 0 && facts.lanes.every(({ live }) => live)) {
        tookS = (performance.now() - began) / 1_000;
        stop.abort();
        await visiting;
      }
    }
    const { accepted, committed, spooled, in_memory: inMemory } = facts;
    const dropped = Object.values(facts.dropped).reduce((sum, count) => sum + count, 0);
    const live = facts.lanes.reduce((sum, lane) => sum + lane.committed, 0);
    return {
      tookS,
      agentCpuS: cpuS(agent.pid) - agentCpuS,
      centralCpuS: cpuS(central.pid) - centralCpuS,
      liveMs: this.#liveMs,
      visits: this.#answeredMs.length,
      rssMbStart,
      rssMbMost,
      rssMbEnd: rssMb(agent.pid),
      backlogCommitted: committed - live,
      balance: { accepted, committed, spooled, inMemory, dropped },
    };
  }

  async #visit(stop: AbortSignal): Promise<void> {
    const origin = `http://127.0.0.1:${this.#edge.ports.visitors}`;
    const pool = new Pool(origin, { connections: 4 });
    const began = performance.now();
    while (!stop.aborted) {
      const due = ((performance.now() - began) / 1_000) * visitsPerS;
      while (this.#answeredMs.length < due) {
        const path = `/fresh/${this.#answeredMs.length}`;
        const headers = { host: "nobody.example.org" };
        const { body } = await pool.request({ path, method: "GET", headers });
        await body.dump();
        this.#answeredMs.push(performance.now());
      }
      await sleep(10, stop);
    }
    await pool.close();
  }

  /** Live lanes commit in order: as many as they committed have arrived, canaries (fewer than one a second) beside. */
  #noteLive({ lanes: all }: Facts): void {
    const live = all.filter((lane) => lane.live && lane.accepted > 0);
    const committed = live.reduce((sum, lane) => sum + lane.committed, 0);
    const waiting = live.reduce((sum, lane) => sum + lane.accepted - lane.committed, 0);
    const now = performance.now();
    // What waits is the newest: all but so many have arrived, and no more than were committed.
    const arrived = Math.min(this.#answeredMs.length - waiting, committed);
    while (this.#liveMs.length < arrived)
      this.#liveMs.push(now - (this.#answeredMs[this.#liveMs.length] ?? now));
  }

  async #facts(): Promise<Facts> {
    const socket = join(this.#edge.dir, "agent", "control.sock");
    const signal = AbortSignal.timeout(30_000);
    for await (const answer of callControl(socket, "logs-backlog", {}, signal))
      return answer as Facts;
    throw new Error("no answer");
  }
}

function rssMb(pid: number): number {
  const [, kib = "0"] =
    /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) / 1_024;
}

/** Of all threads, user and system. */
function cpuS(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / ticksPerS;
}
