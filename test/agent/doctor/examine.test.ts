// The doctor: on a host where all is well it finds nothing, and each fault that is planted it names, with what to do.

import { chmodSync, mkdirSync, readFileSync, statfsSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createServer as createSecure } from "node:https";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { AgentSeen, Finding, LinkSeen } from "../../../src/agent/doctor/finding.ts";
import { keepLastSettings } from "../../../src/agent/settings/last-settings.ts";
import { freePorts } from "../../support/free-ports.ts";
import { makeCertificate } from "../../support/x509.ts";
import { answering } from "./agent-seen.ts";
import {
  examinedHost,
  newHostScene,
  openHostRoom,
  shipped,
  type HostRoom,
  type HostScene,
} from "./host-scene.ts";

const stack = new AsyncDisposableStack();
let room: HostRoom;
let scene: HostScene;
let dir: string;
let site: HostRoom["site"];

beforeAll(async () => {
  room = stack.use(await openHostRoom());
  ({ dir, site } = room);
});
afterAll(async () => stack.disposeAsync());
beforeEach(async () => {
  scene = await newHostScene(room);
});

const examined = async (): Promise<readonly Finding[]> => examinedHost(room, scene);
const linked = (link: LinkSeen): AgentSeen => ({ ...answering, link });

/** The findings that are not good. */
const faults = async (): Promise<readonly Finding[]> =>
  (await examined()).filter(({ state }) => state === "failed" || state === "warning");

async function fault(check: string, state: "failed" | "warning", words: RegExp): Promise<void> {
  const found = await faults();
  expect(found).toContainEqual({
    check,
    state,
    text: expect.stringMatching(words),
    hint: expect.stringMatching(/\S/),
  });
  expect(JSON.stringify(found)).not.toContain(scene.secret);
}

test("where all is well nothing is found, and each check says what it saw", async () => {
  scene.unit = new Map(shipped("/var/lib/accel-agent"));
  scene.settings = { state_dir: "/var/lib/accel-agent" };
  const found = await examined();
  expect(found.filter(({ state }) => state === "failed")).toEqual([]);
  const [, , , ...rest] = found.map(({ check }) => check);
  expect(rest).toEqual(
    expect.arrayContaining([
      "state_dir",
      "disk",
      "central",
      "certificate",
      "clock",
      "sign_in",
      "ports",
      "descriptors",
      "sysctls",
      "unit",
    ]),
  );
  expect(found).toContainEqual({
    check: "sign_in",
    state: "ok",
    text: `central knows this host as deployment site ${site.id}`,
  });
});

test("settings that are not valid: every error, and what can be looked at without them", async () => {
  scene.settings = { log_level: "loud", spol: 1 };
  await fault("settings", "failed", /spol unknown key[\s\S]*log_level must be one of/);
});

test("a file that is broken beside an agent that runs: the other checks go by what the agent read before", async () => {
  const state = join(dir, "state-kept");
  mkdirSync(state);
  scene.settings = { state_dir: state };
  const good = await examined();
  await keepLastSettings(state, readFileSync(scene.config, "utf8"));
  scene.settings = { state_dir: state, log_level: "loud" };
  const hints = {
    answers: "The agent serves on with what it has, and could not start again.",
    hangs: "The agent runs with what it has, and could not start again.",
    denied: "An agent that runs serves on with what it has, and could not start again.",
    absent: "The agent does not run, and cannot start.",
  } as const;
  const answers = { isReady: true, warnsOf: [], link: undefined, isEncoderMissed: false };
  for (const kind of ["answers", "hangs", "denied"] as const) {
    scene.agent = { kind, reason: "", ...answers };
    const [found] = await examined();
    expect(found?.hint).toMatch(new RegExp(`^Correct the settings file;.* ${hints[kind]}$`));
  }
  scene.agent = { kind: "absent" };
  const [settings, ...others] = await examined();
  expect(settings).toMatchObject({
    check: "settings",
    state: "failed",
    text: expect.stringMatching(
      /log_level must be one of[^]*The other checks go by the settings that the agent read last, kept at 20/,
    ),
    hint: expect.stringContaining(hints.absent),
  });
  expect(others.map(({ check }) => check)).toEqual(good.slice(1).map(({ check }) => check));
  expect(others).toContainEqual(expect.objectContaining({ check: "sign_in", state: "ok" }));
});

test("keys that nobody knows fail, and the other checks go by what the agent uses", async () => {
  scene.settings = { accelerater: {} };
  const [settings, ...others] = await examined();
  expect(settings).toMatchObject({ check: "settings", state: "failed" });
  expect(settings?.text).toMatch(/accelerater unknown key; did you mean accelerator\?$/);
  expect(others.map(({ check }) => check)).toEqual(
    expect.arrayContaining(["secret", "disk", "sign_in", "ports", "unit"]),
  );
});

test("the secret: unreadable, of another form, readable by others, of another site", async () => {
  scene.secret = "nonsense";
  await fault("secret", "failed", /must hold 32 lower-case hex/);
  scene.secret = site.secret16;
  scene.secretMode = 0o644;
  await fault("secret", "warning", /can be read by other users \(mode 644\)/);
  scene.secretMode = 0o600;
  scene.secret = "f".repeat(32);
  await fault("sign_in", "failed", /the secret is not that of/);
});

test("the clocks differ by more than central admits, and by so much that it will be soon", async () => {
  scene.clockAheadMs = 400_000;
  await fault("clock", "failed", /differ by (?:399|400|401) s; it lets nobody in/);
  scene.clockAheadMs = 60_000;
  await fault("clock", "warning", /differ by (?:59|60|61) s/);
});

test("central: no such name, nobody listens, another certificate than this host trusts, one that ends soon", async () => {
  scene.central = "https://no-such-host.invalid";
  await fault("central", "failed", /no-such-host\.invalid has no address/);
  const [closed] = await freePorts(1);
  scene.central = `https://127.0.0.1:${closed}`;
  await fault("central", "failed", /cannot be reached: .*ECONNREFUSED/);
  const hint = async () => (await faults()).find(({ check }) => check === "central")?.hint;
  for (const here of ["127.0.0.1", "localhost", "[::1]"]) {
    scene.central = `http://${here}:${closed}`;
    expect(await hint(), here).toMatch(/^That is this host, .*systemctl start accel-central/);
  }

  const day = 86_400_000;
  const authority = makeCertificate({ subject: "An authority", isAuthority: true });
  const caFile = join(dir, "ca.pem");
  writeFileSync(caFile, authority.pem);
  const soon = new Date(Date.now() + 5 * day);
  const leaf = makeCertificate({ names: ["127.0.0.1"], issuer: authority, to: soon });
  const server = createSecure({ key: leaf.key, cert: leaf.pem }, (_, out) =>
    out.writeHead(404).end(),
  );
  await listening(server);
  scene.central = `https://127.0.0.1:${portOf(server)}`;
  await fault("certificate", "failed", /not accepted: .*unable to/);
  scene.settings = { central_ca_file: caFile };
  await fault("certificate", "warning", /ends at/);
  scene.central = `https://localhost:${portOf(server)}`;
  await fault("certificate", "failed", /not accepted: .*altnames/);
  scene.settings = { central_ca_file: join(dir, "nothing.pem") };
  await fault("authority", "failed", /nothing\.pem/);
});

test("central: a proxy before it that answers in its place, with a time of its own", async () => {
  const proxy = createServer((_, out) => out.writeHead(502).end());
  await listening(proxy);
  scene.central = `http://127.0.0.1:${portOf(proxy)}`;
  await fault("central", "failed", /does not answer as central does: status 502 from the proxy/);
  const found = await examined();
  expect(found.filter(({ check }) => check === "clock" || check === "sign_in")).toMatchObject([
    { state: "skipped", text: "central did not tell its time" },
    { state: "skipped", text: "central cannot be asked" },
  ]);
});

test("what the agent says of its own link stands beside what this command reached", async () => {
  const link = async () => (await examined()).filter(({ check }) => check === "link");
  expect(await link()).toMatchObject([
    { state: "skipped", text: expect.stringContaining("outside the unit's restrictions") },
  ]);
  scene.agent = answering;
  expect(await link()).toMatchObject([{ state: "ok" }]);
  scene.agent = linked({ state: "disconnected", error: "connect EPERM 192.0.2.1:443" });
  await fault("link", "failed", /not connected to central: connect EPERM/);
  for (const [error, hint] of [
    ["connect EPERM 192.0.2.1:443", /\(IPAddressDeny=\)/],
    ["connect ENETUNREACH 192.0.2.1:443", /PrivateNetwork=/],
    ["connect ECONNREFUSED 192.0.2.1:443", /^(?!.*IPAddressDeny)/],
    ["the secret is not that of", /^(?!.*IPAddressDeny)/],
  ] as const) {
    scene.agent = linked({ state: "disconnected", error });
    expect(await link()).toMatchObject([{ state: "failed", hint: expect.stringMatching(hint) }]);
  }
});

test("a port that another program has, with its name; an address of another host", async () => {
  const server = createServer();
  await listening(server);
  scene.ports = [portOf(server), ...scene.ports];
  await fault("ports", "failed", new RegExp(`:${portOf(server)} is taken`));
  scene.settings = { accelerator: { listen: "192.0.2.7:8080" } };
  await fault("ports", "failed", /192\.0\.2\.7:8080: this host has no such address/);
});

test("an agent that runs and does not listen where the settings say", async () => {
  scene.agent = answering;
  await fault("ports", "failed", /the agent runs and does not listen there/);
});

test("an instance is told of its own unit", async () => {
  scene.instance = "b";
  scene.unit = new Map([...shipped("/var/lib/accel-agent"), ["LimitNOFILE", "1024"]]);
  await fault("unit", "failed", /may write \/var\/lib\/accel-agent alone/);
  const hints = (await faults()).map(({ hint }) => hint);
  expect(hints).toContainEqual(expect.stringContaining("systemctl edit accel-agent@b)"));
  scene.agent = { ...answering, isReady: false };
  await fault("agent", "warning", /does not serve yet/);
  expect((await faults()).find(({ check }) => check === "agent")?.hint).toBe(
    "`accel-agent status --instance b` says what it waits for.",
  );
  scene.unit = undefined;
  expect(await examined()).toContainEqual(
    expect.objectContaining({ text: "there is no unit accel-agent@b on this host" }),
  );
});

test("a unit that runs, and is not started at a boot; one that is started again and again", async () => {
  const unit = (...more: readonly (readonly [string, string])[]) =>
    new Map([...shipped("/var/lib/accel-agent"), ...more]);
  scene.unit = unit(["ActiveState", "active"], ["UnitFileState", "disabled"]);
  await fault("unit", "warning", /^it runs, and does not start at a boot$/);
  scene.unit = unit(["ActiveState", "inactive"], ["UnitFileState", "enabled"]);
  await fault("unit", "warning", /^it starts at a boot, and does not run now: nobody is served$/);
  scene.unit = unit(["ActiveState", "inactive"], ["UnitFileState", "disabled"]);
  expect(await examined()).toContainEqual({
    check: "unit",
    state: "skipped",
    text: "it does not run; systemctl enable --now accel-agent starts it",
  });
  scene.unit = unit(["ActiveState", "activating"], ["Result", "success"], ["NRestarts", "7"]);
  await fault("unit", "failed", /^it does not stay up: systemd has started it again 7 times$/);
});

test("descriptors and kernel settings", async () => {
  scene.unit = new Map([...shipped("x"), ["LimitNOFILE", "1024"]]);
  await fault("descriptors", "failed", /the unit allows 1024 open files/);
  scene.unit = undefined;
  scene.files["/proc/self/limits"] = "Max open files            20000   20000   files\n";
  await fault("descriptors", "warning", /^20000 open files/);
  scene.files["/proc/sys/net/core/somaxconn"] = "128\n";
  await fault("sysctls", "warning", /somaxconn should be at least 1024, and it is 128/);
  delete scene.files["/proc/sys/net/core/somaxconn"];
  await fault("sysctls", "warning", /somaxconn should be at least 1024, and this kernel has none/);
});

test("disk: more allowed than the disk has, or than others leave", async () => {
  scene.settings = { cache: { disk_max: "900TiB" } };
  await fault(
    "disk",
    "failed",
    /the settings allow 900\.?\d* TiB and the disk of .* has .*cache\.disk_max 900\.?\d* TiB/,
  );
  const { bavail, blocks, bsize } = statfsSync(dir);
  const taken = (blocks - bavail) * bsize;
  const allowed = Math.round((bavail * bsize + taken / 2) / 2 ** 20);
  scene.settings = { cache: { disk_max: `${allowed}MiB` } };
  await fault("disk", "warning", /the agent has 0 B and .* are free/);
});

test("a state directory that is a file, and one that cannot be made", async () => {
  const file = join(dir, "a-file");
  writeFileSync(file, "");
  scene.settings = { state_dir: file };
  await fault("state_dir", "failed", /is no directory/);
  scene.settings = { state_dir: join(file, "below") };
  await fault("state_dir", "failed", /a-file is no directory/);
});

test.each([
  [
    "ProtectHome",
    "yes",
    { sites: [{ domain: "a.example", views_dir: "/home/a/site", devlove_file: "/etc/hostname" }] },
    /sees no home directories, and \/home\/a\/site/,
  ],
  [
    "PrivateTmp",
    "yes",
    { sites: [{ domain: "a.example", views_dir: "/tmp/site", devlove_file: "/etc/hostname" }] },
    /has a \/tmp of its own/,
  ],
  [
    "DynamicUser",
    "yes",
    {
      sites: [{ domain: "a.example", views_dir: "/nowhere/at/all", devlove_file: "/etc/hostname" }],
    },
    /\/nowhere\/at\/all does not exist/,
  ],
  [
    "DynamicUser",
    "yes",
    { sites: [{ domain: "a.example", views_dir: "LOCKED/site", devlove_file: "/etc/hostname" }] },
    /may not enter .*locked/,
  ],
  [
    "DynamicUser",
    "yes",
    { sites: [{ domain: "a.example", views_dir: "/srv", devlove_file: "HIDDEN" }] },
    /may not read .*hidden\.json/,
  ],
  ["AmbientCapabilities", "", { accelerator: { listen: "127.0.0.1:80" } }, /ports below 1024/],
  [
    "LoadCredential",
    "",
    { secret16_file: "/run/credentials/accel-agent.service/secret16" },
    /does not hand the secret/,
  ],
  ["TimeoutStopUSec", "15s", {}, /killed 15 s after its stop/],
  ["MemoryDenyWriteExecute", "yes", {}, /ends Node/],
  ["MemoryMax", "104857600", {}, /has 100 MiB of memory/],
  ["RestrictAddressFamilies", "AF_UNIX AF_INET", {}, /may not use AF_INET6, AF_NETLINK/],
  ["IPAddressDeny", "0.0.0.0/0", {}, /refuses addresses/],
  [
    "StateDirectory",
    "other",
    { state_dir: "/var/lib/accel-agent" },
    /may write \/var\/lib\/other alone/,
  ],
] as const)("the unit: %s=%s with %j", async (name, value, settings, words) => {
  mkdirSync(join(dir, "locked/site"), { recursive: true });
  chmodSync(join(dir, "locked"), 0o700);
  writeFileSync(join(dir, "hidden.json"), "{}");
  chmodSync(join(dir, "hidden.json"), 0o600);
  scene.unit = new Map([...shipped("accel-agent"), [name, value]]);
  const text = JSON.stringify(settings)
    .replace("LOCKED", join(dir, "locked"))
    .replace("HIDDEN", join(dir, "hidden.json"));
  scene.settings = Object(JSON.parse(text)) as HostScene["settings"];
  const found = await faults();
  expect(found.filter(({ check }) => check === "unit").map(({ text }) => text)).toContainEqual(
    expect.stringMatching(words),
  );
});

test.each([
  ["active", "success", "0 0", 0, "ok", "it runs"],
  ["active", "success", "0 0", 2, "ok", "it runs; systemd has started it again 2 times"],
  [
    "inactive",
    "success",
    "1 0",
    0,
    "skipped",
    /not run; systemctl enable --now accel-agent starts/,
  ],
  ["activating", "success", "0 0", 0, "warning", "it is starting"],
  [
    "activating",
    "exit-code",
    "1 2",
    7,
    "failed",
    /stay up: it failed with exit status 2; .* 7 times/,
  ],
  ["failed", "watchdog", "2 6", 0, "failed", /\(failed\): systemd's watchdog ended it, for /],
  ["failed", "signal", "2 15", 0, "failed", /\(failed\): it was ended by SIGTERM$/],
  // A command of the unit ahead of the agent failed: of the agent there was no process.
  ["failed", "exit-code", "0 0", 0, "failed", /: a start failed before the agent began$/],
] as const)(
  "the unit that is %s (%s, main process: %s, restarts: %i)",
  async (active, result, main, restarts, state, words) => {
    const [code = "", status = ""] = main.split(" ");
    scene.unit = new Map([
      ...shipped("accel-agent"),
      ["ActiveState", active],
      ["Result", result],
      ["NRestarts", String(restarts)],
      ["ExecMainCode", code],
      ["ExecMainStatus", status],
    ]);
    const found = (await examined()).filter(({ check }) => check === "unit").at(-1);
    expect([found?.state, found?.text]).toEqual([
      state,
      typeof words === "string" ? words : expect.stringMatching(words),
    ]);
    if (state === "failed") expect(found?.hint).toContain("journalctl -u accel-agent -n 50");
  },
);

async function listening(server: Server): Promise<void> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
}
const portOf = (server: Server): number => (server.address() as AddressInfo).port;
