// A rollout on a Debian 12 that boots: the agent of the packages, the signed repository that `npm run package -- repo` makes, the host's own installer; a release that is good, one that does not start, held packages.

import { execFileSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Command } from "../../src/base/command.ts";
import { customerCommand } from "../../src/cli/central-customer.ts";
import { rolloutCommand } from "../../src/cli/central-rollout.ts";
import { siteCommand } from "../../src/cli/central-site.ts";
import { userCommand } from "../../src/cli/central-user.ts";
import { run } from "../cli/command-rig.ts";
import { startAptRepository, type AptRepository } from "../support/apt-repository.ts";
import { BootedDebian, bootedHint, bootedMissing } from "../support/booted.ts";
import { settingsOf, start } from "../support/central-whole.ts";
import { freePorts } from "../support/free-ports.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const root = join(import.meta.dirname, "../..");
const stack = new AsyncDisposableStack();
const dir = stack.use(tempDir()).path;
const stateDir = join(dir, "central");
let debian: BootedDebian;
let repository: AptRepository;
let base = "";

afterAll(async () => stack.disposeAsync());

const say = async (command: Command, ...args: readonly string[]): Promise<string> =>
  run(command, [...args, "--state-dir", stateDir]);
type Row = Readonly<Record<string, unknown>>;
const facts = async (command: Command, ...args: readonly string[]): Promise<Row> =>
  Object(JSON.parse(await say(command, ...args, "--json"))) as Row;

function build(version: string): void {
  const options = ["--level", "none", "--version", version, "--out", join(dir, version)];
  execFileSync(process.execPath, ["scripts/package.mjs", ...options], { cwd: root, stdio: "pipe" });
}

/** Makes the release one that ends at its start. */
function spoil(version: string): void {
  const [deb = ""] = globSync(join(dir, version, "accel-common_*.deb"));
  const tree = join(dir, "spoilt");
  execFileSync("dpkg-deb", ["--raw-extract", deb, tree]);
  const main = join(tree, "usr/lib/accel-agent/package/dist/main.js");
  const broken = `if (process.argv.includes("run")) throw new TypeError("a broken release");\n`;
  const text = readFileSync(main, "utf8");
  const begin = text.indexOf("\n") + 1; // Behind `#!`.
  writeFileSync(main, text.slice(0, begin) + broken + text.slice(begin));
  execFileSync("dpkg-deb", ["--root-owner-group", "-Znone", "--build", tree, deb]);
  rmSync(tree, { recursive: true });
}

const running = async (): Promise<string> => {
  const { out } = await debian.sh(
    "readlink /proc/$(systemctl show -p MainPID --value accel-agent)/exe",
  );
  return /accel-agent\/([^/]+)\/bin/.exec(out)?.[1] ?? "";
};

async function rolled(release: string, state: string): Promise<{ head: Row; host: Row }> {
  const limits = ["--soak", "5s", "--grace", "30s", "--silence", "5min"] as const;
  await facts(rolloutCommand, "start", "--customer", "1", "--release", release, ...limits);
  return ended(state);
}

async function ended(state: string): Promise<{ head: Row; host: Row }> {
  const found = await until(
    `the rollout is ${state}`,
    async () => {
      const { hosts, ...head } = await facts(rolloutCommand, "status");
      const [host = {}] = hosts as readonly Row[];
      const isOver = head["state"] === "done" || head["state"] === "returned";
      return isOver && { head, host };
    },
    400_000,
  );
  if (found.head["state"] === state) return found;
  const journal = await debian.journal("accel-agent-rollout");
  throw new Error(`not ${state}: ${JSON.stringify(found, null, 2)}\n${journal}`);
}

beforeAll(async () => {
  if (bootedMissing) return;
  for (const version of ["1.0.0", "2.0.0", "3.0.0"]) build(version);
  spoil("3.0.0");
  repository = stack.use(await startAptRepository(dir));
  mkdirSync(join(dir, "all"));
  for (const version of ["1.0.0", "2.0.0", "3.0.0"])
    cpSync(join(dir, version), join(dir, "all"), { recursive: true });
  repository.publish(join(dir, "all"));
  const [central = 0] = await freePorts(1);
  base = `http://127.0.0.1:${central}`;
  stack.use(await start(settingsOf(stateDir, `base_url: ${base}\n`, central)));
  debian = stack.use(await BootedDebian.boot(dir));
}, 600_000);

const step = test.skipIf(bootedMissing);

step(
  `a host from the repository joins; without the host's word nothing is installed (${bootedHint})`,
  async () => {
    await debian.must("apt-get update 2>&1 && apt-get install -y ca-certificates 2>&1");
    const key = readFileSync(join(dir, "repository/accel-agent.asc"), "utf8");
    debian.write("/etc/apt/keyrings/accel-agent.asc", key);
    const source = `deb [signed-by=/etc/apt/keyrings/accel-agent.asc] ${repository.url}/ ./\n`;
    debian.write("/etc/apt/sources.list.d/accel-agent.list", source);
    await debian.must("apt-get update 2>&1");
    await debian.must("apt-get install -y accel-common=1.0.0 accel-agent=1.0.0 2>&1");
    await facts(customerCommand, "add", "Example Ltd");
    await facts(userCommand, "add", "anna", "--customer", "1");
    await facts(siteCommand, "add", "--user", "anna");
    const [code = ""] = (await say(siteCommand, "enrol", "1")).split("\n");
    const [edge = 0, metrics = 0] = await freePorts(2);
    const yaml = `accelerator: { listen: 127.0.0.1:${edge}, workers: 1 }\nmetrics: { listen: 127.0.0.1:${metrics} }\n`;
    debian.write("/etc/accel-agent/agent.yaml", yaml);
    await debian.must(`echo ${code} | accel-agent join --central ${base}`);
    expect(await running()).toBe("1.0.0");
    await until("central has seen the host", async () =>
      (await debian.sh("accel-agent status --json")).out.includes('"connected"'),
    );
    const { host } = await rolled("2.0.0", "done");
    expect(host).toMatchObject({
      state: "stays",
      reason: "this host does not let central install releases",
    });
    expect(await running()).toBe("1.0.0");
  },
  600_000,
);

step(
  `where the host allows it the release is installed, and goes back by word of the operator (${bootedHint})`,
  async () => {
    await debian.must("systemctl enable --now accel-agent-rollout.path 2>&1");
    const { head, host } = await rolled("2.0.0", "done");
    expect(host).toMatchObject({ state: "proven", had: "1.0.0", has: "2.0.0" });
    expect(await running()).toBe("2.0.0");
    await say(rolloutCommand, "back", String(head["rollout_id"]));
    expect((await ended("returned")).host).toMatchObject({ state: "back", has: "1.0.0" });
    expect(await running()).toBe("1.0.0");
    process.stdout.write(await debian.journal("accel-agent-rollout"));
  },
  900_000,
);

step(
  `a release that does not start is taken back by the host itself, and central says why (${bootedHint})`,
  async () => {
    const { head, host } = await rolled("3.0.0", "returned");
    expect(head["reason"]).toMatch(/3\.0\.0 did not take over: TypeError: a broken release$/);
    expect(host).toMatchObject({ state: "back", had: "1.0.0", has: "1.0.0" });
    // Nobody noticed: the release before served all the time.
    expect(await debian.must("systemctl show -p NRestarts --value accel-agent")).toBe("0\n");
    expect(await running()).toBe("1.0.0");
    expect(await debian.must("dpkg-query -W -f '${Version}' accel-agent")).toBe("1.0.0");
    process.stdout.write(`${String(head["reason"])}\n`);
  },
  900_000,
);

step(
  `held packages stay, and an order for an older version that was not replaced is refused (${bootedHint})`,
  async () => {
    await debian.must("apt-mark hold accel-agent accel-common");
    expect((await rolled("2.0.0", "done")).host).toMatchObject({
      state: "stays",
      reason: "pinned: its packages are held",
    });
    await debian.must("apt-mark unhold accel-agent accel-common");
    expect((await rolled("0.9.0", "done")).host).toMatchObject({
      state: "missed",
      reason: "0.9.0 is older than 1.0.0, and not the version that was replaced last",
    });
    expect((await rolled("9.9.9", "done")).host).toMatchObject({
      state: "missed",
      reason: expect.stringContaining("9.9.9"),
    });
    expect(await running()).toBe("1.0.0");
  },
  600_000,
);
