// `doctor`, `netcheck` and `diagnostics` beside a whole edge, as an operator gives them; the archive is searched for every secret of the host.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  appendFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { startOrigin, type Origin } from "../support/origin.ts";
import { mainFile, node } from "../support/process.ts";
import { canMountDisks, SmallDisk } from "../support/small-disk.ts";
import { until } from "../support/until.ts";

let edge: Edge;
let origin: Origin;
let config: string;

beforeAll(async () => {
  origin = await startOrigin();
  edge = await Edge.prepare();
  await edge.startCentral();
  const script = new CustomerScript(edge, origin.url, "doctor");
  await script.enrol();
  await edge.startAgent();
  for (const { run } of script.steps().slice(0, 2)) await run();
  await until("a page is served", async () => {
    return (await edge.visit("/page/1", { host: domain })).status === 200;
  });
  config = join(edge.dir, "agent.yaml");
}, 120_000);
afterAll(async () => {
  await edge[Symbol.asyncDispose]();
  await origin[Symbol.asyncDispose]();
});

async function given(...args: readonly string[]) {
  const child = spawn(node, [mainFile, "agent", ...args, "--config", config]);
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const [code] = (await once(child, "close")) as number[];
  return { code, out, err };
}

type Finding = { readonly check: string; readonly state: string; readonly text: string };
const examined = async () =>
  JSON.parse((await given("doctor", "--json")).out) as readonly Finding[];

test("the doctor finds that the agent listens and that central lets it in; check --deep is the same", async () => {
  const found = await examined();
  expect(found).toContainEqual({
    check: "ports",
    state: "ok",
    text: `accelerator.listen 127.0.0.1:${edge.ports.visitors}: the agent listens`,
  });
  expect(found).toContainEqual({
    check: "sign_in",
    state: "ok",
    text: expect.stringMatching(/knows this host as deployment site \d+/),
  });
  const names = (said: string): readonly string[] =>
    said
      .split("\n")
      .filter((line) => /^(?:ok|warn|FAIL|–) /.test(line))
      .map((line) => line.slice(5).split(" ")[0] ?? "");
  const { out } = await given("check", "--deep");
  expect(names(out)).toEqual(found.map(({ check }) => check));
});

test("netcheck has times of central and of each origin, and fails when one is away", async () => {
  const good = await given("netcheck");
  expect([good.code, good.err]).toEqual([0, ""]);
  expect(good.out).toMatch(
    /^central, asked by this command, outside the restrictions of the unit\n {2}http:\/\/127\.0\.0\.1:\d+\/agent-api\/v1\/ca: answers\n {4}connection [\d.]+ ms, answer [\d.]+ ms\n {2}the agent itself, from within its unit: connected\norigins, asked by the agent from within its unit\n/,
  );
  expect(good.out).toContain(`${origin.url}/: `);
  expect(good.out).toContain(`of ${domain}`);
  const { url } = origin;
  await origin[Symbol.asyncDispose]();
  const bad = await given("netcheck");
  expect(bad.code).toBe(1);
  expect(bad.out).toMatch(/FAILED at connect: .*ECONNREFUSED/);
  expect(bad.err).toContain(url);
  const json = JSON.parse((await given("netcheck", "--json")).out) as {
    origins: { origins: { error: { step: string } }[] };
  };
  expect(json.origins.origins).toMatchObject([{ error: { step: "connect" } }]);
});

test.skipIf(!canMountDisks)(
  "diagnostics on a full disk: no file is left, and it says where room is lacking",
  async () => {
    using disk = new SmallDisk("32M");
    disk.mount(join(edge.dir, "small"));
    disk.fill(0);
    const there = readdirSync(disk.at);
    const archive = join(disk.at, "archive.tar.gz");
    const { code, out, err } = await given("diagnostics", "--out", archive);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(`there is no room for the archive at ${archive}\n`);
    expect(err).toContain("--out FILE");
    expect(readdirSync(disk.at)).toEqual(there);
    disk.unmount();
  },
);

test("diagnostics: one archive for its owner alone, everything in it, and no secret", async () => {
  const secret = readFileSync(join(edge.dir, "secret16"), "utf8").trim();
  const { keys } = JSON.parse(readFileSync(join(edge.dir, "agent/vault/keys.json"), "utf8")) as {
    keys: { key: string }[];
  };
  appendFileSync(
    config,
    [
      `# left here by somebody: ${secret}`,
      "# https://anna:cAnArYpassword@example.com/",
      "# Authorization: Bearer cAnArYbearer0123456789",
      "# enrol1_00112233445566778899aabbccddeeff6e3ac1b1",
      "# password: cAnArYword",
      "# Environment=API_TOKEN=cAnArYvariable",
      "",
    ].join("\n"),
  );
  const archive = join(edge.dir, "archive.tar.gz");
  const { code, out, err } = await given("diagnostics", "--out", archive);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/archive\.tar\.gz: \d+ files\n$/);
  expect(statSync(archive).mode & 0o777).toBe(0o600);
  const unpacked = join(edge.dir, "unpacked");
  mkdirSync(unpacked);
  execFileSync("tar", ["-xzf", archive, "-C", unpacked]);
  const [only = ""] = readdirSync(unpacked);
  const files = readdirSync(join(unpacked, only));
  for (const name of [
    "status.json",
    "metrics.txt",
    "metrics-deployment.txt",
    "settings.yaml",
    "doctor.txt",
    "netcheck.json",
    "logs-backlog.json",
    "viewsets.json",
  ])
    expect(files, name).toContain(name);
  const all = files.map((name) => readFileSync(join(unpacked, only, name), "utf8")).join("\n");
  const secrets = [
    secret,
    ...keys.map(({ key }) => key),
    "cAnArY",
    "00112233445566778899aabbccddeeff",
  ];
  expect(keys.length).toBeGreaterThan(0);
  for (const one of secrets) expect(all.includes(one), one.slice(0, 6)).toBe(false);
  expect(all).toContain("# left here by somebody: [secret]");
  expect(all).toContain("accel_agent_build_info");
});

test("an agent that hangs: every command says so within moments and fails; an archive has all that needs no agent", async () => {
  const began = performance.now();
  const hangs = /the program is there: it accepts connections on .*, and has not answered for 15 s/;
  const archive = join(edge.dir, "hanging.tar.gz");
  process.kill(edge.agent.pid, "SIGSTOP");
  try {
    const [collected, netcheck, ...others] = await Promise.all([
      given("diagnostics", "--out", archive),
      given("netcheck"),
      given("status"),
      given("logs", "backlog"),
      given("logs", "tail"),
      given("cache", "stats"),
      given("cache", "clear", domain, "--everything"),
      given("bots", "list"),
      given("replace"),
      given("check", "--reload"),
    ]);
    // The archive asks once, not for each of its files.
    expect(performance.now() - began).toBeLessThan(60_000);
    for (const { code, err } of others) {
      expect([code, err]).toEqual([1, expect.stringMatching(hangs)]);
      expect(err).toContain("`accel-agent doctor`");
    }
    expect([netcheck.code, netcheck.err]).toEqual([1, expect.stringMatching(hangs)]);
    expect(netcheck.out).toContain(
      "the agent hangs: it accepts connections, and does not answer: they are not asked",
    );
    expect([collected.code, collected.out]).toEqual([0, expect.stringMatching(hangs)]);
  } finally {
    process.kill(edge.agent.pid, "SIGCONT");
  }
  const piece = (name: string): string =>
    execFileSync("tar", ["-xzOf", archive, "--wildcards", `*/${name}`]).toString();
  expect(piece("missing.txt")).toMatch(new RegExp(`^status\\.json: ${hangs.source}`, "m"));
  expect(piece("doctor.txt")).toMatch(new RegExp(`^FAIL agent +${hangs.source}`, "m"));
  expect(piece("doctor.txt")).toContain(`127.0.0.1:${edge.ports.visitors}: the agent listens`);
  await until("it answers again", async () => (await given("check", "--reload")).code === 0);
}, 120_000);

test("a settings file that is broken: the agent goes on, and so do the commands that look at it", async () => {
  const kept = (): string => readFileSync(join(edge.dir, "agent/settings.yaml"), "utf8");
  const good = readFileSync(config, "utf8");
  writeFileSync(config, `${good}# one more line\n`);
  process.kill(edge.agent.pid, "SIGHUP");
  await until("a reload keeps it", () => kept() === `${good}# one more line\n`);
  for (const broken of [`${good}sites: [\n`, `${good}accelerater: {}\nlog_level: loud\n`]) {
    writeFileSync(config, broken);
    process.kill(edge.agent.pid, "SIGHUP");
    const status = await given("status", "--json");
    expect(status.code).toBe(0);
    expect(status.err).toMatch(broken.endsWith("[\n") ? /^accel-agent: .* no YAML.*\n$/ : /^$/);
    // By file and line; a value by its key, too.
    const [, line] = /restart would fail: [^"]*agent\.yaml:(\d+:[^,]*)/.exec(status.out) ?? [];
    expect(line).toMatch(broken.endsWith("[\n") ? /^\d+: / : /^\d+: log_level must be one of/);
    const found = await examined();
    expect(found[0]).toMatchObject({ check: "settings", state: "failed" });
    expect(found).toContainEqual(
      expect.objectContaining({
        check: "ports",
        text: `accelerator.listen 127.0.0.1:${edge.ports.visitors}: the agent listens`,
      }),
    );
    const netcheck = await given("netcheck");
    expect(netcheck.out).toContain("the agent itself, from within its unit: connected");
    expect(netcheck.err).toContain(config);
  }
  writeFileSync(config, good);
  expect((await given("status", "--json")).out).not.toContain("restart_would_fail");
  expect(kept()).toBe(`${good}# one more line\n`);
}, 120_000);

test("without the agent: the ports are free, origins are not asked, and an archive says what it lacks", async () => {
  await edge.agent.kill();
  expect(await examined()).toContainEqual({
    check: "ports",
    state: "ok",
    text: `accelerator.listen 127.0.0.1:${edge.ports.visitors} is free`,
  });
  const { out } = await given("netcheck");
  expect(out).toContain("the agent does not run: they are not asked");
  const archive = join(edge.dir, "second.tar.gz");
  expect((await given("diagnostics", "--out", archive)).code).toBe(0);
  const missing = execFileSync("tar", [
    "-xzOf",
    archive,
    "--wildcards",
    "*/missing.txt",
  ]).toString();
  expect(missing).toMatch(/^status\.json: no answer on /m);
});
