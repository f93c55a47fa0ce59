// What the doctor says to a user who is not root: what he does not see, and no false advice.

import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkAgent } from "../../../src/agent/doctor/agent.ts";
import { checkWayToCentral } from "../../../src/agent/doctor/central.ts";
import { checkDisk } from "../../../src/agent/doctor/disk.ts";
import { checkAuthority, checkSecret, checkStateDir } from "../../../src/agent/doctor/files.ts";
import type { Finding, Host } from "../../../src/agent/doctor/finding.ts";
import { checkPorts } from "../../../src/agent/doctor/ports.ts";
import { checkUnit } from "../../../src/agent/doctor/unit.ts";
import { agentFields, type AgentSettings } from "../../../src/agent/settings/fields.ts";
import { agentProgram, placeOf } from "../../../src/base/instance.ts";
import { loadSettings } from "../../../src/base/settings-file.ts";
import { codeOf, hintOf } from "../../../src/core/faults.ts";
import { readSecret16 } from "../../../src/agent/settings/secret.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { shipped } from "./host-scene.ts";

const nobody = 65_534;
/** Root may look at everything: a test that is run as root looks as nobody does. */
const isRoot = process.getuid?.() === 0;

async function asNobody<T>(look: () => Promise<T> | T): Promise<T> {
  if (isRoot) process.seteuid?.(nobody);
  try {
    return await look();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

const hostOfNobody = (config: string): Host => ({
  config,
  place: placeOf(agentProgram),
  uid: nobody,
  read: () => undefined,
  unit: async () => undefined,
  others: () => [],
  agent: async () => ({ kind: "denied" }),
  installer: () => undefined,
  encoder: async () => ({ kind: "opened", versions: {} }),
});

test("another user than root is told what he does not see", async () => {
  using dir = tempDir();
  chmodSync(dir.path, 0o755);
  const [config, state, secret] = ["agent.yaml", "state", "secret16"].map((name) =>
    join(dir.path, name),
  ) as [string, string, string];
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  writeFileSync(
    config,
    JSON.stringify({
      central_url: "https://central.example",
      name16: "0123456789abcdef",
      state_dir: state,
      secret16_file: secret,
      accelerator: { listen: `127.0.0.1:${port}` },
    }),
  );
  writeFileSync(secret, "f".repeat(32));
  mkdirSync(state);
  for (const path of [state, secret]) chmodSync(path, 0o000);
  const settings = loadSettings(agentFields, config);
  const host = hostOfNobody(config);
  const found: readonly Finding[] = await asNobody(async () => [
    await checkAgent(host),
    checkSecret(settings, host),
    checkStateDir(settings, host),
    checkDisk(settings, host),
    ...(await checkPorts(settings, host)).slice(0, 1),
  ]);
  server.close();
  const unseen = { state: "skipped", text: expect.stringMatching(/: give the command as root$/) };
  expect(found).toEqual(
    ["agent", "secret", "state_dir", "disk", "ports"].map((check) => ({ check, ...unseen })),
  );
});

test("a secret that all may read is told to another user, who sees neither the state directory nor what links lead to", async () => {
  using dir = tempDir();
  chmodSync(dir.path, 0o755);
  const at = (name: string): string => join(dir.path, name);
  const server = createServer((_, out) => out.writeHead(404).end()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const settings = {
    central_url: `http://127.0.0.1:${port}`,
    name16: "0123456789abcdef",
    state_dir: at("state"),
    secret16_file: at("secret16"),
    central_ca_file: at("ca.pem"),
    sites: [{ domain: "a.example", views_dir: at("views"), devlove_file: at("secret16") }],
  };
  writeFileSync(at("agent.yaml"), JSON.stringify(settings));
  writeFileSync(at("secret16"), "f".repeat(32), { mode: 0o644 });
  // As systemd has it for a unit with a user of its own.
  mkdirSync(at("private/state"), { recursive: true });
  mkdirSync(at("private/views"));
  writeFileSync(at("private/ca.pem"), "");
  for (const name of ["state", "views", "ca.pem"]) symlinkSync(at(`private/${name}`), at(name));
  chmodSync(at("private"), 0o000);
  const known = loadSettings(agentFields, at("agent.yaml"));
  const unit = new Map([...shipped("/var/lib/accel-agent"), ["ProtectHome", "no"]]);
  const host = { ...hostOfNobody(at("agent.yaml")), unit: async () => unit };
  const found: readonly Finding[] = await asNobody(async () => [
    checkSecret(known, host),
    checkAuthority(known, host),
    checkStateDir(known, host),
    checkDisk(known, host),
    ...(await checkWayToCentral(known, host, () => new Date())),
    ...(await checkUnit(known, host)),
  ]);
  server.close();
  expect(found[0]).toEqual({
    check: "secret",
    state: "warning",
    text: `${at("secret16")} can be read by other users (mode 644)`,
    hint: `chmod 600 ${at("secret16")}; if somebody may have read it, rotate the secret (docs/operations/central.md, a secret in wrong hands)`,
  });
  const unseen = found.filter(({ text }) => text.endsWith(": give the command as root"));
  expect(unseen.map(({ check, text }) => [check, text.split(":")[0]])).toEqual([
    ["authority", `this user may not read ${at("ca.pem")}`],
    ["state_dir", `this user may not look into ${at("state")}`],
    ["disk", `this user does not see what the agent has in ${at("state")}`],
    ["sign_in", `this user may not look into ${at("state")}`],
    ["link", "this user may not ask the agent"],
    ["unit", `this user may not look at ${at("views")}`],
    ["unit", `this user may not look at ${at("ca.pem")}`],
  ]);
});

test("a state directory that the unit makes at the first start is no fault for a user who could not make it", async () => {
  // access(2) asks as whom a test runs: here no directory can be made, by root either.
  const state = "/proc/sys/accel-agent-shop";
  const place = { ...placeOf(agentProgram, "shop"), stateDir: state };
  const settings = { state_dir: state } as AgentSettings;
  const host = { ...hostOfNobody(place.config), place };
  expect(await asNobody(() => checkStateDir(settings, host))).toEqual({
    check: "state_dir",
    state: "ok",
    text: `${state} is made at the first start`,
  });
  const other = { state_dir: "/proc/sys/other" } as AgentSettings;
  expect(await asNobody(() => checkStateDir(other, host))).toEqual({
    check: "state_dir",
    state: "skipped",
    text: `${other.state_dir} is not there, and this user may not try to make it: give the command as root`,
  });
  // Without a unit the agent is started by a user, who has to be able to.
  const own = { ...host, config: "/srv/agent.yaml" };
  expect(await asNobody(() => checkStateDir(settings, own))).toMatchObject({
    state: "failed",
    text: expect.stringMatching(/EACCES|EROFS/),
  });
});

test("what the agent has in a directory that this user may list and not enter is no reason to fail", async () => {
  using dir = tempDir();
  chmodSync(dir.path, 0o755);
  const state = join(dir.path, "state");
  mkdirSync(state);
  writeFileSync(join(state, "agent.db"), "x");
  chmodSync(state, 0o744);
  const host = hostOfNobody("");
  const settings = {
    state_dir: state,
    "cache.disk_max": 0,
    "viewset.disk_max": 0,
    "spool.max": 0,
    "accelerator.body_disk_max": 0,
  } as AgentSettings;
  expect((await asNobody(() => checkDisk(settings, host))).check).toBe("disk");
});

test("a secret that this user may not read is told so, and not that it should be written", async () => {
  using dir = tempDir();
  chmodSync(dir.path, 0o755);
  const path = join(dir.path, "secret16");
  writeFileSync(path, "f".repeat(32), { mode: 0o000 });
  const fault = await asNobody(() => {
    try {
      return readSecret16(path);
    } catch (error) {
      return error;
    }
  });
  expect(codeOf(fault)).toBe("SECRET_UNREADABLE");
  expect(hintOf(fault)).toMatch(
    /^This user may not read it\. An operator gives the command as root/,
  );
});

test("a secret whose file is gone while the agent runs with its copy is told before a restart tells it", () => {
  using dir = tempDir();
  const [shown, source] = ["shown", "source"].map((name) => join(dir.path, name)) as [
    string,
    string,
  ];
  writeFileSync(shown, "f".repeat(32), { mode: 0o600 });
  const settings = { secret16_file: shown, state_dir: dir.path } as AgentSettings;
  const place = { ...placeOf(agentProgram, "b"), secret: { shown, source } };
  const host = { uid: 0, place };
  expect(checkSecret(settings, host)).toEqual({
    check: "secret",
    state: "failed",
    text: `${source} is gone; the agent runs with the copy that systemd made of it, and could not start again`,
    hint: `As root, while the agent runs: install -o root -g root -m 600 ${shown} ${source}. Without it the unit skips its next start.`,
  });
  // The agent is stopped: there is no copy any more.
  rmSync(shown);
  const stopped = checkSecret(settings, { uid: nobody, place });
  expect(stopped).toMatchObject({
    state: "failed",
    text: `${source} is not there; the agent cannot start`,
  });
  for (const part of [
    `As root: install -o root -g root -m 600 /dev/stdin ${source}`,
    "systemctl start accel-agent@b.",
    "secret16 in GET /deployment-site/ID/ of the customer API",
    "accel-agent join --central URL --instance b",
  ])
    expect(stopped.hint).toContain(part);
  writeFileSync(source, "f".repeat(32), { mode: 0o600 });
  expect(checkSecret(settings, host).state).toBe("ok");
});
