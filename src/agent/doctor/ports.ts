// Checks whether the agent can listen where the settings say, and names who listens there instead.

import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { createServer } from "node:net";
import { listenText } from "../../base/settings-fields.ts";
import { systemCode } from "../../core/faults.ts";
import type { AgentSettings } from "../settings/fields.ts";
import { findingsOf, type Finding, type Host } from "./finding.ts";

const keys = ["accelerator.listen", "accelerator.tls_listen", "metrics.listen"] as const;

export async function checkPorts(settings: AgentSettings, host: Host): Promise<readonly Finding[]> {
  const isRunning = await host.isRunning();
  const findings: Finding[] = [];
  for (const key of keys) {
    const address = settings[key];
    if (address !== undefined && address.port !== 0)
      findings.push(await checkPort(key, address, isRunning, host));
  }
  return findings;
}

type Address = { readonly host: string; readonly port: number };

async function checkPort(
  key: string,
  address: Address,
  isRunning: boolean,
  host: Host,
): Promise<Finding> {
  const { ok, failed } = findingsOf("ports");
  const text = `${key} ${listenText(address)}`;
  const fault = await listenFault(address);
  switch (fault) {
    case undefined:
      return isRunning
        ? failed(
            `${text}: the agent runs and does not listen there`,
            "Settings that changed need a restart: systemctl restart accel-agent.",
          )
        : ok(`${text} is free`);
    case "EADDRINUSE": {
      const owner = listenerOf(address.port, host);
      const isOwn = isRunning && (owner === undefined || owner.isAgent);
      return isOwn
        ? ok(`${text}: the agent listens`)
        : failed(
            `${text} is taken${owner === undefined ? "" : ` by ${owner.name} (pid ${owner.pid})`}`,
            "Stop that program, or choose another port.",
          );
    }
    case "EACCES":
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

type Listener = { readonly pid: number; readonly name: string; readonly isAgent: boolean };

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
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry) || !holdsOne(`/proc/${entry}/fd`, inodes)) continue;
    const command = (read(`/proc/${entry}/cmdline`) ?? "").split("\0");
    const name = (read(`/proc/${entry}/comm`) ?? "?").trim();
    return { pid: Number(entry), name, isAgent: command.includes("run") && command.some(isOurs) };
  }
  return undefined;
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
