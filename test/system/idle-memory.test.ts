// What an idle agent does not take: threads that nobody needs, code that a command alone needs, and what the start left in each heap. As built, with the options of its unit.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { builtTree } from "../support/built-tree.ts";
import { Edge } from "../support/edge.ts";
import { Program } from "../support/process.ts";
import { until } from "../support/until.ts";

const site = { name16: "0123456789abcdef", secret16: "0123456789abcdef0123456789abcdef" };

/**
 * MiB that the agent's process has alone, with one worker and without a site: 86 as measured, 109 where nobody collects the start's garbage. A thread that nobody needs
 * takes 9.
 */
const privateMiBMax = 96;

const threadsOf = (pid: number): readonly string[] =>
  readdirSync(`/proc/${pid}/task`).map((id) =>
    readFileSync(`/proc/${pid}/task/${id}/comm`, "utf8").trim(),
  );

const ours = (names: readonly string[]): readonly string[] =>
  names.filter((name) => /^(?:spool|indexer|table|tables|tabler|accel)/.test(name)).toSorted();

function privateMiB(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "latin1");
  return Number(/^Private_Dirty:\s+(\d+) kB$/m.exec(text)?.[1]) / 1_024;
}

/** The options of Node that the unit sets. */
function optionsOfUnit(): string {
  const unit = readFileSync(new URL("../../systemd/accel-agent.service", import.meta.url), "utf8");
  return /^Environment="NODE_OPTIONS=(.+)"$/m.exec(unit)?.[1] ?? expect.unreachable();
}

/** Loaded into each thread, which tells what was asked of ICU: with the first of it the process takes 7 MiB. */
const icuProbe = `data:text/javascript,${encodeURIComponent(`
  import { threadName } from "node:worker_threads";
  import { writeSync } from "node:fs";
  const told = (what) => writeSync(2, "ICU by " + (threadName || "a process") + ": " + what + "\\n");
  for (const name of ["NumberFormat", "DateTimeFormat", "Collator", "Segmenter", "PluralRules"])
    Intl[name] = new Proxy(Intl[name], {
      construct: (...args) => (told(name), Reflect.construct(...args)),
      apply: (...args) => (told(name), Reflect.apply(...args)),
    });
  for (const type of [Number, Date, BigInt])
    for (const name of ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"])
      if (Object.hasOwn(type.prototype, name))
        type.prototype[name] = new Proxy(type.prototype[name], {
          apply: (...args) => (told(name), Reflect.apply(...args)),
        });
`)}`;

test("an idle agent has one thread for each duty that it has, and gives back what its start took", async () => {
  using tree = builtTree();
  await using edge = await Edge.prepare();
  edge.writeAgentSettings(site); // Central is away throughout: no bot set comes.
  edge.changeAgentSettings({
    accelerator: { listen: `127.0.0.1:${edge.ports.visitors}`, workers: 1 },
  });
  // Who asks no origin over TLS does not load undici: 0.6 MiB of text, and 2 MiB in all.
  const worker = readFileSync(join(dirname(tree.main), "worker.js"), "utf8");
  expect(worker).toMatch(/\bPlainPool = class\b|\bclass PlainPool\b/);
  expect(worker).not.toMatch(/\bTlsPool = class\b|\bclass TlsPool\b|require_client_h1/);
  const env = {
    NODE_OPTIONS: `${optionsOfUnit()} --import=${icuProbe}`,
    MALLOC_ARENA_MAX: "2",
    NODE_COMPILE_CACHE: join(edge.dir, "compile-cache"),
  };
  const serves = async (): Promise<boolean> =>
    edge.visit("/").then(
      ({ status }) => status > 0,
      () => false,
    );
  const args = ["agent", "run", "--config", join(edge.dir, "agent.yaml")];
  await using agent = await Program.start(args, serves, env, undefined, tree.main);
  await until("the table thread has ended", () =>
    ours(threadsOf(agent.pid)).every((name) => !name.startsWith("table")),
  );
  expect(ours(threadsOf(agent.pid))).toEqual(["accelerator-1", "indexer", "spool"]);
  expect(agent.said.split("\n").filter((line) => line.startsWith("ICU"))).toEqual([]);
  const last = await until("memory is given back", () => {
    const mib = privateMiB(agent.pid);
    return mib < privateMiBMax ? mib : undefined;
  });
  expect(last).toBeGreaterThan(0);
}, 400_000);
