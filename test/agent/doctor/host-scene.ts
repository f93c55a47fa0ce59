// Hosts for the doctor's tests, where all is well until a test breaks one thing: with real files and ports, and a central that lets the host in.

import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { examine } from "../../../src/agent/doctor/examine.ts";
import type { AgentSeen, Finding, Host } from "../../../src/agent/doctor/finding.ts";
import { agentFields } from "../../../src/agent/settings/fields.ts";
import { agentProgram, placeOf } from "../../../src/base/instance.ts";
import { loadSettings } from "../../../src/base/settings-file.ts";
import { newSite, settingsOf, start } from "../../support/central-whole.ts";
import { freePorts } from "../../support/free-ports.ts";
import { tempDir } from "../../support/temp-dir.ts";

/** The unit as it is shipped. */
export const shipped = (stateDir: string): ReadonlyMap<string, string> =>
  new Map([
    ["LoadState", "loaded"],
    ["LimitNOFILE", "131072"],
    ["StateDirectory", stateDir.replace("/var/lib/", "")],
    ["DynamicUser", "yes"],
    ["SupplementaryGroups", ""],
    ["ProtectHome", "yes"],
    ["PrivateTmp", "no"],
    ["AmbientCapabilities", "cap_net_bind_service"],
    ["LoadCredential", "secret16:/etc/accel-agent/secret16"],
    ["TimeoutStopUSec", "30s"],
    ["MemoryDenyWriteExecute", "no"],
    ["MemoryMax", "infinity"],
    ["RestrictAddressFamilies", "AF_UNIX AF_NETLINK AF_INET AF_INET6"],
    ["IPAddressDeny", ""],
  ]);

/** A host where all is well; a test breaks one thing of it. */
export type HostScene = {
  /** The settings file that was looked at last. */
  config: string;
  central: string;
  secret: string;
  secretMode: number;
  settings: {
    readonly [key: string]: unknown;
    readonly accelerator?: object;
    readonly cache?: object;
  };
  /** Free ones: of visitors and of metrics. */
  ports: readonly number[];
  unit: Map<string, string> | undefined;
  files: Record<string, string>;
  agent: AgentSeen;
  instance: string | undefined;
  /** Settings of further agents of the host. */
  others: string[];
  clockAheadMs: number;
};
export type HostRoom = AsyncDisposable & {
  readonly dir: string;
  readonly central: Awaited<ReturnType<typeof start>>;
  readonly site: Awaited<ReturnType<typeof newSite>>;
};

export async function openHostRoom(): Promise<HostRoom> {
  const stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir()).path;
  chmodSync(dir, 0o755);
  const central = stack.use(await start(settingsOf(join(dir, "central"))));
  const site = await newSite(central.url);
  return { dir, central, site, [Symbol.asyncDispose]: async () => stack.disposeAsync() };
}

/** Makes a host where all is well. */
export async function newHostScene({ central, site }: HostRoom): Promise<HostScene> {
  return {
    config: "",
    central: central.url,
    secret: site.secret16,
    secretMode: 0o600,
    settings: {},
    ports: await freePorts(2),
    unit: undefined,
    files: {
      "/proc/sys/net/core/somaxconn": "4096\n",
      "/proc/self/limits":
        "Max open files            1048576              1048576              files\n",
    },
    agent: { kind: "absent" },
    instance: undefined,
    others: [],
    clockAheadMs: 0,
  };
}

/** Has the doctor look at the host. */
export async function examinedHost(
  { dir, site }: HostRoom,
  scene: HostScene,
): Promise<readonly Finding[]> {
  const at = mkdtempSync(join(dir, "host-"));
  chmodSync(at, 0o755);
  writeFileSync(join(at, "secret16"), scene.secret);
  chmodSync(join(at, "secret16"), scene.secretMode);
  const [listen, metrics] = scene.ports;
  const { accelerator, cache, ...others } = scene.settings;
  const settings = {
    central_url: scene.central,
    name16: site.name16,
    secret16_file: join(at, "secret16"),
    state_dir: join(at, "state"),
    accelerator: { listen: `127.0.0.1:${listen}`, body_disk_max: "1MiB", ...accelerator },
    metrics: { listen: `127.0.0.1:${metrics}` },
    cache: { disk_max: "1MiB", ...cache },
    viewset: { disk_max: "1MiB" },
    spool: { max: "4MiB" },
    ...others,
  };
  writeFileSync(join(at, "agent.yaml"), JSON.stringify(settings, null, 2)); // YAML is a superset.
  const config = join(at, "agent.yaml");
  scene.config = config;
  const host: Host = {
    config,
    place: placeOf(agentProgram, scene.instance),
    uid: process.getuid?.() ?? 0,
    read: (path) => scene.files[path],
    unit: async () => scene.unit,
    others: () =>
      scene.others.map((other) => ({ config: other, settings: loadSettings(agentFields, other) })),
    agent: async () => scene.agent,
    installer: () => undefined,
    encoder: async () => ({ kind: "opened", versions: {} }),
  };
  return examine(config, host, () => new Date(Date.now() + scene.clockAheadMs));
}
