// The units allow what the programs do: a table of what each needs, compared with the unit, and with what it asks of the kernel in a whole demo.

import { execFileSync, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePortBase, type Places } from "../support/demo.ts";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Api, Edge } from "../support/edge.ts";
import { startOrigin } from "../support/origin.ts";
import { straceMissing } from "../support/file-trace.ts";
import { mainFile, Program } from "../support/process.ts";
import { tempDir } from "../support/temp-dir.ts";
import { unitFeatures } from "../support/unit-features.ts";
import { readTraces, tracingAll, untraced } from "../support/unit-trace.ts";
import { until } from "../support/until.ts";

const isMissing = spawnSync("systemd-analyze", ["--version"]).status !== 0;
const programs = ["agent", "central"] as const;

/** All values of a key, in order. */
function valuesOf(program: string, key: string): readonly string[] {
  const unit = readFileSync(
    new URL(`../../systemd/accel-${program}.service`, import.meta.url),
    "utf8",
  );
  return [...unit.matchAll(new RegExp(`^${key}=(.*)$`, "gm"))].map(([, value]) => value ?? "");
}

/** Names of a filter's words, groups opened. */
function opened(words: readonly string[]): ReadonlySet<string> {
  const names = words.flatMap((word): readonly string[] => {
    if (!word.startsWith("@")) return [word];
    const said = execFileSync("systemd-analyze", ["syscall-filter", word], { encoding: "utf8" });
    const inside = said.split("\n").flatMap((line) => /^ {4}([@\w-]+)$/.exec(line)?.[1] ?? []);
    return [...opened(inside)];
  });
  return new Set(names);
}

/** What systemd makes of several lines: the first says whether it is a list of what is allowed; later ones add and take away. */
function allowedBy(filters: readonly string[]): ReadonlySet<string> {
  let allowed = opened(["@default"]);
  for (const filter of filters) {
    const names = opened(filter.replace(/^~/, "").split(" "));
    allowed = filter.startsWith("~") ? allowed.difference(names) : allowed.union(names);
  }
  return allowed;
}

test.each(programs)("%s: the unit gives what the table says, and no more", (program) => {
  const { families, syscalls, capabilities } = unitFeatures[program];
  const words = (key: string): readonly string[] =>
    valuesOf(program, key).flatMap((value) => value.split(" ").filter(Boolean));
  expect(words("RestrictAddressFamilies").toSorted()).toEqual(Object.keys(families).toSorted());
  expect(valuesOf(program, "SystemCallFilter")).toEqual(syscalls);
  expect(words("CapabilityBoundingSet")).toEqual(capabilities);
  expect(valuesOf(program, "ProtectSystem")).toEqual(["strict"]);
  expect(valuesOf(program, "ReadWritePaths")).toEqual([]);
});

test.skipIf(isMissing || straceMissing !== undefined)(
  "what both programs ask of the kernel in a whole demo is what their units allow (needs systemd-analyze, strace)",
  async () => {
    using dir = tempDir();
    const log = join(dir.path, "trace");
    const state = join(dir.path, "state");
    const survived = Object.keys(unitFeatures.agent.survived);
    const prefix = tracingAll(log, survived);
    const base = await freePortBase();
    const args = ["agent", "demo", "--state", state, "--port-base", String(base)];
    const file = join(state, "demo.json");
    // Nobody listens there: what is asked of the system is the same.
    const env = { NOTIFY_SOCKET: join(dir.path, "notify") };
    const isUp = async (): Promise<boolean> => existsSync(file);
    await using demo = await Program.start(args, isUp, env, 300_000, mainFile, prefix);
    await exercise(JSON.parse(readFileSync(file, "utf8")) as Places);
    expect(await demo.terminate()).toBe(0);
    await until("the trace is whole", () => hasEndedIn(log, demo.pid));

    const traces = readTraces(log, { agent: '"agent", "run"', central: '"central", "serve"' });
    for (const program of programs) {
      const traced = traces.get(program);
      if (traced === undefined) throw new Error("no trace");
      const table = unitFeatures[program];
      const allowed = allowedBy(table.syscalls);
      const denied = [...traced.syscalls, ...untraced].filter((name) => !allowed.has(name));
      expect(
        denied.filter((name) => !Object.hasOwn(table.survived, name)),
        program,
      ).toEqual([]);
      expect(notIn(traced.families, Object.keys(table.families)), program).toEqual([]);
      expect(notIn(traced.commands, [...Object.keys(table.commands), "node"]), program).toEqual([]);
      const own = join(state, program);
      const places = [...table.devices, own, `${own}/*`, "/proc/self/fd/*"];
      expect(notIn(traced.written, places), program).toEqual([]);
      const kernelFiles = [...Object.keys(table.kernelFiles), "/proc/self/*"];
      expect(notIn(traced.kernelFiles, kernelFiles), program).toEqual([]);
    }
    // It was the whole: what is rarely asked for is among it.
    const agent = traces.get("agent");
    expect(notIn(Object.keys(unitFeatures.agent.commands), [...(agent?.commands ?? [])])).toEqual(
      [],
    );
    expect(agent?.families).toContain("AF_NETLINK");
    expect(agent?.kernelFiles).toContain("/proc/diskstats");
  },
  600_000,
);

function notIn(found: Iterable<string>, patterns: readonly string[]): readonly string[] {
  return [...found].filter(
    (one) =>
      !patterns.some((pattern) =>
        pattern.endsWith("*") ? one.startsWith(pattern.slice(0, -1)) : one === pattern,
      ),
  );
}

const hasEndedIn = (log: string, pid: number): boolean => {
  const own = `${log}.${pid}`;
  return existsSync(own) && /^\+\+\+ /m.test(readFileSync(own, "latin1"));
};

type Version = Readonly<Record<string, unknown>>;

/** Activates a devlove with these backends; the version when it is no longer pending. */
async function activate(api: Api, domain: string, urls: readonly string[]): Promise<Version> {
  const content = JSON.stringify({ domains: { [domain]: { backend: { urls } } } });
  const name = `backends-${randomUUID()}`;
  const made = await api.post(`/${domain}/devlove/${name}/`, { schema: "devlove/1", content });
  expect(made.status).toBe(201);
  const version = async (): Promise<Version | undefined> => {
    const { body } = await api.get(`/active-viewset/${domain}/`);
    return (body as readonly Version[]).find((one) => one["name"] === name);
  };
  const wanted = await version();
  const put = await api.put(`/active-viewset/${domain}/${String(wanted?.["id"])}/`, wanted);
  expect(put.status).toBe(200);
  return until("an answer to the activation", async () => {
    const now = await version();
    // An agent that has just been started is absent until it has reached central for the first time.
    return !["pending", "absent"].includes(String(now?.["activation"])) && now;
  });
}

/** An origin by its name, a visit, a clear, a mark, metrics. */
async function exercise({ domain, ...places }: Places): Promise<void> {
  const api = new Api(places.central_url);
  api.token = places.api_token;
  const { port } = new URL(places.backend_url);
  const activated = await activate(api, domain, [`http://localhost:${port}`]);
  expect(activated).toMatchObject({ activation: "applied" });
  const card = await fetch(`${places.accelerator_url}/generated/card.svg?seed=5`);
  expect(card.status).toBe(200);
  const clear = { url_path_patterns: ["kind:generated"] };
  expect((await api.post(`/clear-accelerator-cache/${domain}/`, clear)).status).toBe(200);
  const mark = { attach_to_bot: "unwelcome", attach_to_domain: domain };
  expect((await api.post("/mark-as-bad-bot/203.0.113.0_24/", mark)).status).toBe(200);
  for (const path of ["/metrics", "/metrics/deployment", "/metrics/node_exporter"])
    expect((await fetch(`${places.metrics_url}${path}`)).status).toBe(200);
}

test.skipIf(straceMissing !== undefined)(
  "without netlink an origin at a port of the agent's own comes into force all the same (needs strace)",
  async () => {
    await using origin = await startOrigin();
    await using edge = await Edge.prepare();
    await edge.startCentral();
    const script = new CustomerScript(edge, origin.url, "without-netlink");
    await script.enrol();
    const { visitors } = edge.ports;
    // Only for all interfaces does it matter which addresses the host has.
    edge.changeAgentSettings({ accelerator: { listen: `0.0.0.0:${visitors}`, workers: 1 } });
    // Of our calls only those to netlink are sendto(2). What a unit without AF_NETLINK answers is 97.
    const failing = "strace -D -f --seccomp-bpf --trace=sendto --inject=sendto:error=EAFNOSUPPORT";
    await edge.startAgent(undefined, [...failing.split(" "), "-o", "/dev/null"]);
    for (const { name, run } of script.steps()) if (name === "domain") await run();
    const activated = await activate(edge.api, domain, [`http://198.51.100.7:${visitors}`]);
    expect(activated).toMatchObject({ activation: "applied" });
    const own = await activate(edge.api, domain, [`http://127.0.0.1:${visitors}`]);
    expect(own).toMatchObject({
      activation: "failed",
      deployments: [{ error: expect.stringContaining("is a listener of the agent itself") }],
    });
    const status = await fetch(`http://127.0.0.1:${edge.ports.metrics}/readyz`);
    expect(await status.text()).toContain("viewset_not_served");
  },
  300_000,
);
