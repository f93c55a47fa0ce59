// Checks whether the agent can listen where the settings say, and names who listens there instead. Another agent of this host has its ports even while it is
// stopped: it would not start again.

import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { createServer } from "node:net";
import { agentProgram, placeOf } from "../../base/instance.ts";
import { listenText } from "../../base/settings-fields.ts";
import { systemCode } from "../../core/faults.ts";
import type { AgentSettings } from "../settings/fields.ts";
import { findingsOf, unseen, type AgentSeen, type Finding, type Host } from "./finding.ts";

const keys: readonly PortKey[] = ["accelerator.listen", "accelerator.tls_listen", "metrics.listen"];
type PortKey = "accelerator.listen" | "accelerator.tls_listen" | "metrics.listen";

export async function checkPorts(settings: AgentSettings, host: Host): Promise<readonly Finding[]> {
  const agent = await host.agent();
  const { failed } = findingsOf("ports");
  const shared = sharedPorts(settings, host);
  const findings: Finding[] = shared.map(({ text }) => failed(text, portsOfItsOwn));
  for (const key of keys) {
    const address = settings[key];
    if (address === undefined || address.port === 0) continue;
    const { finding, owner } = await checkPort(key, address, agent, host);
    const sharers = shared.filter((one) => one.key === key).map(({ config }) => config);
    if (!isTold(sharers, finding, owner)) findings.push(finding);
  }
  return findings;
}

/** What there is to do where another agent has a port: its program serves, and is not to be stopped. */
export const portsOfItsOwn =
  "Each agent of a host needs ports of its own: choose another one here or there.";

/** Whether a finding says no more than that other agents, the `sharers`, have the port in their settings. */
function isTold(
  sharers: readonly (string | undefined)[],
  { state }: Finding,
  owner: Listener | undefined,
): boolean {
  if (sharers.length === 0 || state === "ok") return false;
  return state === "skipped" || (owner?.config !== undefined && sharers.includes(owner.config));
}

/** One that hangs listens still. */
const runs: ReadonlySet<AgentSeen["kind"]> = new Set(["answers", "hangs"]);

type Address = { readonly host: string; readonly port: number };

async function checkPort(
  key: string,
  address: Address,
  { kind }: AgentSeen,
  host: Host,
): Promise<{ readonly finding: Finding; readonly owner?: Listener | undefined }> {
  const text = `${key} ${listenText(address)}`;
  const isRunning = runs.has(kind);
  const fault = await listenFault(address);
  if (fault !== "EADDRINUSE") return { finding: unlistened(fault, text, isRunning, host) };
  const owner = listenerOf(address.port, host);
  return { finding: usedPort(owner, text, isRunning, host), owner };
}

/** Judges an address on which somebody listens. */
function usedPort(
  owner: Listener | undefined,
  text: string,
  isRunning: boolean,
  host: Host,
): Finding {
  const { ok, failed } = findingsOf("ports");
  if (isRunning && isOwn(owner, host)) return ok(`${text}: the agent listens`);
  if (owner === undefined && host.uid !== 0)
    return unseen("ports", `${text}: this user does not see who listens there`);
  if (owner?.config === host.config) return ok(`${text}: the agent that is starting listens`);
  // Its descriptor store, or a socket unit.
  if (owner?.pid === 1) return ok(`${text}: systemd holds it, and visitors wait for the agent`);
  return failed(
    `${text} is taken${ownerText(owner)}`,
    owner?.config === undefined ? "Stop that program, or choose another port." : portsOfItsOwn,
  );
}

/** Judges an address on which nobody listens, by why this command cannot either. */
function unlistened(
  fault: string | undefined,
  text: string,
  isRunning: boolean,
  host: Host,
): Finding {
  const { ok, failed } = findingsOf("ports");
  switch (fault) {
    case undefined:
      return isRunning
        ? failed(
            `${text}: the agent runs and does not listen there`,
            `Settings that changed need a restart: systemctl restart ${host.place.unit.replace(/\.service$/, "")}.`,
          )
        : ok(`${text} is free`);
    case "EACCES":
      if (host.uid !== 0) return unseen("ports", `${text}: this user may not try ports below 1024`);
      return failed(
        `${text} may not be listened on by this user`,
        "Ports below 1024 need root here, and CAP_NET_BIND_SERVICE in the unit.",
      );
    case "EADDRNOTAVAIL":
      return failed(
        `${text}: this host has no such address`,
        "Name an address of this host, or 0.0.0.0 or [::] for all.",
      );
    default:
      return failed(`${text}: ${fault}`, "See ip addr, and choose another address.");
  }
}

async function listenFault({ host, port }: Address): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen({ host: host.replace(/^\[(.*)\]$/, "$1"), port, exclusive: true });
    await once(server, "listening");
    return undefined;
  } catch (error) {
    return systemCode(error) ?? "cannot be listened on";
  } finally {
    server.close();
  }
}

type Listener = {
  readonly pid: number;
  readonly name: string;
  /** The settings file of an agent; undefined: it is none. */
  readonly config: string | undefined;
};

/** Whether a listener is the agent of these settings, as far as can be seen. */
const isOwn = (owner: Listener | undefined, { config }: Host): boolean =>
  owner === undefined || owner.config === config;

const ownerText = (owner: Listener | undefined): string =>
  owner === undefined
    ? ""
    : owner.config === undefined
      ? ` by ${owner.name} (pid ${owner.pid})`
      : ` by the agent of ${owner.config} (pid ${owner.pid})`;

/** A port of these settings that somebody else has, or will have. */
export type TakenPort = {
  readonly key: PortKey;
  readonly address: Address;
  readonly text: string;
  /** The settings of the agent that has it; undefined: it is no agent, or cannot be seen. */
  readonly config: string | undefined;
};

/** Finds the ports that another agent of this host has in its settings, whether it runs or not. */
export function sharedPorts(settings: AgentSettings, { others }: Host): readonly TakenPort[] {
  return others().flatMap(({ config, settings: theirs }) =>
    keys.flatMap((key) => {
      const address = settings[key];
      const other = keys.find((theirKey) => overlap(address, theirs[theirKey]));
      return address === undefined || other === undefined
        ? []
        : [
            {
              key,
              address,
              text: `${key} ${listenText(address)} is ${other} of ${config} too`,
              config,
            },
          ];
    }),
  );
}

/** Finds the ports that another program listens on. */
export async function takenPorts(
  settings: AgentSettings,
  host: Host,
): Promise<readonly TakenPort[]> {
  const isRunning = runs.has((await host.agent()).kind);
  const taken: TakenPort[] = [];
  for (const key of keys) {
    const address = settings[key];
    if (address === undefined || (await listenFault(address)) !== "EADDRINUSE") continue;
    const owner = listenerOf(address.port, host);
    if (!isRunning || !isOwn(owner, host))
      taken.push({
        key,
        address,
        text: `${key} ${listenText(address)} is taken${ownerText(owner)}`,
        config: owner?.config,
      });
  }
  return taken;
}

const wildcards = ["0.0.0.0", "::"];

function overlap(one: Address | undefined, other: Address | undefined): boolean {
  if (one === undefined || other === undefined || one.port === 0 || one.port !== other.port)
    return false;
  return one.host === other.host || [one, other].some(({ host }) => wildcards.includes(host));
}

/** Finds the process that listens on a port; undefined where this user may not see it. */
function listenerOf(port: number, { read }: Host): Listener | undefined {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const inodes = new Set(
    ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((path) =>
      (read(path) ?? "").split("\n").flatMap((line) => {
        const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
        return local.endsWith(`:${hex}`) && state === "0A" ? [`socket:[${inode}]`] : [];
      }),
    ),
  );
  // systemd keeps sockets for their units: it comes last, and listens itself where nobody else does.
  const pids = readdirSync("/proc").filter((entry) => /^\d+$/.test(entry));
  for (const entry of [...pids.filter((pid) => pid !== "1"), "1"]) {
    if (!holdsOne(`/proc/${entry}/fd`, inodes)) continue;
    const command = (read(`/proc/${entry}/cmdline`) ?? "").split("\0");
    const name = (read(`/proc/${entry}/comm`) ?? "?").trim();
    return { pid: Number(entry), name, config: configOfAgent(command) };
  }
  return undefined;
}

/** The settings file of an agent that runs, by its command line; undefined: it is no agent. */
function configOfAgent(command: readonly string[]): string | undefined {
  const at = command.indexOf("run");
  if (at === -1 || !command.some(isOurs)) return undefined;
  const told = (option: string): string | undefined => {
    const found = command.findIndex((word) => word === option || word.startsWith(`${option}=`));
    return found === -1
      ? undefined
      : (command[found]?.split("=", 2)[1] ?? command[found + 1] ?? undefined);
  };
  return told("--config") ?? placeOf(agentProgram, told("--instance")).config;
}

const isOurs = (argument: string): boolean =>
  /accel-agent|main\.(?:ts|mjs|js)$|^agent$/.test(argument);

function holdsOne(directory: string, links: ReadonlySet<string>): boolean {
  try {
    return readdirSync(directory).some((fd) => {
      try {
        return links.has(readlinkSync(`${directory}/${fd}`));
      } catch {
        return false;
      }
    });
  } catch {
    return false;
  }
}
