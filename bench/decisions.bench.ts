// What it costs to remember a decision: the thread that serves, main that keeps it, and the memory of a full log. CPU time of the thread, so that neighbours do not count.

import { MessageChannel } from "node:worker_threads";
import { DecisionRing } from "../src/agent/bots/decisions/decision-ring.ts";
import {
  DecisionTeller,
  type DecisionBatch,
  type DecisionLine,
} from "../src/agent/bots/decisions/decision-teller.ts";
import { decisionsKept } from "../src/agent/bots/decisions/decision-log.ts";
import type { Decision } from "../src/core/serving/decision.ts";

const batch = 1_000;
/** The kernel tells CPU time in ticks: only sums over many of them mean something. */
const rounds = 400;
const servingNsMost = 2_000;

const decisionOf = (no: number): Decision => ({
  atMs: 1_900_000_000_000.25 + no,
  host: "www.example.com",
  clientIp: `203.0.113.${no % 256}`,
  userAgent: `Mozilla/5.0 (compatible; SomeBot/${no % 7}; +http://www.example.com/bot.html) AppleWebKit/537.36 (KHTML, like Gecko)`,
  verdict: {
    kind: "block",
    reason: "bad-set",
    bot: "scraper",
    set: { kind: "bad", host: "example.com", version: 7 },
  },
  policyOf: undefined,
});

function cpuNs(action: () => void): number {
  const before = process.threadCpuUsage();
  action();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) * 1_000;
}

export async function run(say: (line: string) => void): Promise<void> {
  const decisions = Array.from({ length: batch }, (_, no) => decisionOf(no));
  const { port1: main, port2 } = new MessageChannel();
  const told: string[] = [];
  main.on("message", ({ lines }: DecisionBatch) => {
    told.push(lines);
    main.postMessage(null, []);
  });
  const teller = new DecisionTeller(port2, batch);
  let noting = 0;
  for (let round = 0; round < rounds; round++) {
    noting += cpuNs(() => decisions.forEach((decision) => teller.note(decision)));
    while (told.length <= round) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const posting = cpuNs(() => {
    for (const lines of told) port2.postMessage({ dropped: 0, lines } satisfies DecisionBatch, []);
  });
  const serving = Math.round((noting + posting) / rounds / batch);
  say(`the serving thread: ${serving} ns a decision (at most ${servingNsMost})`);
  if (serving > servingNsMost) throw new Error("a decision costs the serving thread too much");
  const ring = new DecisionRing(decisionsKept);
  const lines = told.flatMap((text) => text.trimEnd().split("\n"));
  const keeping = cpuNs(() => {
    // A teller's own lines.
    for (const line of lines) ring.add(JSON.parse(line) as DecisionLine);
  });
  say(`main: ${Math.round(keeping / lines.length)} ns a decision`);
  while (ring.size < decisionsKept)
    for (const line of lines) ring.add(JSON.parse(line) as DecisionLine);
  say(`looking up one of ${ring.size} by id: ${cpuNs(() => ring.find("0".repeat(16))) / 1e6} ms`);
  teller[Symbol.dispose]();
  main.close();
}
