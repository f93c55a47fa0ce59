// What 1,000 open streams of events (`GET /events/`) cost central, as the kernel counts its threads: idle, and while ten changes a second happen to one customer
// of ten. The same changes without a stream stand beside it. At the end all streams are that customer's, which is the worst that 1,000 pages can be.
//
//   npm run bench -- console-streams [--streams N] [--seconds S]

import { get, type ClientRequest } from "node:http";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Edge } from "../test/support/edge.ts";
import { until } from "../test/support/until.ts";
import { cpuOf, cpuSince, residentMiB } from "./serving/cpu.ts";
import { Figures, percentile } from "./support/figures.ts";

const customers = 10;
const streamsOfToken = 20;
const changesPerSecond = 10;
/** Of a core. */
const limit = { most: 5 };

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      streams: { type: "string", default: "1000" },
      seconds: { type: "string", default: "20" },
    },
  });
  const [count, seconds] = [Number(values.streams), Number(values.seconds)];
  const figures = new Figures(say);
  await using edge = await Edge.prepare();
  edge.changeCentralSettings({ limits: { trials_per_address: 1_000, trials_total: 1_000 } });
  await edge.startCentral();
  const owners: string[] = [];
  for (let no = 0; no < customers; no++) owners.push(await newCustomer(edge, no));
  const [first = ""] = owners;
  const share = async (during: () => Promise<unknown>): Promise<number> => {
    const before = cpuOf(edge.central.pid);
    const beganMs = performance.now();
    await during();
    return cpuSince(before, edge.central.pid) / (performance.now() - beganMs) / 10;
  };
  const rest = async (): Promise<void> => sleep(seconds * 1_000);
  const last = { changedMs: 0 };
  const busy = async (): Promise<void> => change(edge, first, seconds, last);

  await sleep(5_000); // What a start leaves to be done.
  figures.head("central without a stream");
  const idle = await share(rest);
  figures.add("idle", idle, "% of a core");
  const changing = await share(busy);
  figures.add("ten changes a second", changing, "% of a core");
  const memory = residentMiB(edge.central.pid);

  for (const [name, of, most] of [
    [`${count} streams of ${customers} customers`, owners, limit],
    [`${count} streams of the customer that changes`, [first], limit],
  ] as const) {
    figures.head(name);
    const pages = await openPages(edge, of, count, last);
    figures.add(
      "memory for each",
      ((residentMiB(edge.central.pid) - memory) * 1_024) / count,
      "KiB",
    );
    await sleep(3_000);
    figures.add("idle, more than without", (await share(rest)) - idle, "% of a core", most);
    pages.told();
    const more = (await share(busy)) - changing;
    const told = pages.told();
    figures.add("ten changes a second, more than without", more, "% of a core", most);
    figures.add("events written a second", told.events / seconds, "/s");
    figures.add("from the last change until an event, p50", percentile(told.lateMs, 0.5), "ms");
    pages.close();
    await sleep(1_000);
  }
  const load = loadavg().map((processes) => processes.toFixed(1));
  say(`load of the host over 1, 5 and 15 minutes: ${load.join(", ")}`);
  say(figures.missed.length === 0 ? "every limit met" : `missed: ${figures.missed.join("; ")}`);
}

async function newCustomer(edge: Edge, no: number): Promise<string> {
  edge.api.token = "";
  const { status, body } = await edge.api.post("/trial/", { username: `pages-${no}` });
  if (status !== 201) throw new Error(`no trial: ${status}`);
  return String(Object(body).token);
}

/** When the last change was answered. */
type Last = { changedMs: number };

async function change(edge: Edge, owner: string, seconds: number, last: Last): Promise<void> {
  edge.api.token = owner;
  const beganMs = performance.now();
  for (let no = 0; no < seconds * changesPerSecond; no++) {
    await sleep(Math.max(0, beganMs + (no * 1_000) / changesPerSecond - performance.now()));
    const general_policy = { unknown_bots_can_access: no % 2 === 0 };
    const { status } = await edge.api.post("/bot-access-policy/", { general_policy });
    if (status !== 200) throw new Error(`no change: ${status}`);
    last.changedMs = performance.now();
  }
}

type Told = { readonly events: number; readonly lateMs: readonly number[] };
type Pages = { readonly told: () => Told; readonly close: () => void };

/** Opens streams, spread over the customers; as many tokens are made as they need. */
async function openPages(
  edge: Edge,
  owners: readonly string[],
  count: number,
  last: Last,
): Promise<Pages> {
  const requests: ClientRequest[] = [];
  let [open, events] = [0, 0];
  let lateMs: number[] = [];
  for (let no = 0; no < count / streamsOfToken; no++) {
    edge.api.token = owners[no % owners.length] ?? "";
    const made = await edge.api.post("/tokens/", { name: `page ${no}`, role: "read" });
    const headers = { authorization: `Token ${String(Object(made.body).token)}` };
    const path = `http://127.0.0.1:${edge.ports.central}/presentation-api/v1/events/`;
    for (let at = 0; at < streamsOfToken; at++)
      requests.push(
        get(path, { agent: false, headers }, (response) => {
          response.setEncoding("utf8");
          response.on("error", () => undefined);
          response.on("data", (text: string) => {
            if (text.includes("event: hello")) open++;
            if (!text.includes("event: changed")) return;
            events++;
            lateMs.push(performance.now() - last.changedMs);
          });
        }).on("error", () => undefined),
      );
  }
  await until("all streams are open", async () => open === requests.length);
  return {
    told: () => {
      const told = { events, lateMs };
      [events, lateMs] = [0, []];
      return told;
    },
    close: () => {
      for (const request of requests) request.destroy();
    },
  };
}
