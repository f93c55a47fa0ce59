// Checks what the system gives the agent: descriptors, kernel settings, and a unit that shows and allows what the settings need.

import { lstatSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname } from "node:path";
import { agentProgram, placeOfConfig, unitNameOf } from "../../base/instance.ts";
import { endOfMain, meaningOfEnd } from "../../base/service-ends.ts";
import { unreadRemedy, unreadText, unreadWhileUp } from "../../base/unread-unit.ts";
import { systemCode } from "../../core/faults.ts";
import type { AgentSettings } from "../settings/fields.ts";
import { shown } from "./disk.ts";
import { findingsOf, unseen, type Finding, type Host } from "./finding.ts";

/** The properties that the checks ask systemctl(1) for; with LoadCredential of the unit's files beside them. */
export const unitProperties = [
  "LoadState",
  "ActiveState",
  "SubState",
  "Result",
  "ExecMainCode",
  "ExecMainStatus",
  "NRestarts",
  "UnitFileState",
  "LimitNOFILE",
  "StateDirectory",
  "DynamicUser",
  "User",
  "SupplementaryGroups",
  "ProtectHome",
  "PrivateTmp",
  "AmbientCapabilities",
  "TimeoutStopUSec",
  "MemoryDenyWriteExecute",
  "MemoryMax",
  "RestrictAddressFamilies",
  "IPAddressDeny",
] as const;

const descriptorsWanted = 65_536;
const descriptorsLeast = 4_096;

export async function checkDescriptors(host: Host): Promise<Finding> {
  const { ok, warning, failed, skipped } = findingsOf("descriptors");
  const unit = await host.unit();
  const unread = unit && unreadText(unit, unitNameOf(host.place));
  if (unread !== undefined) return skipped(`what the unit allows cannot be read: ${unread}`);
  const ofUnit = unit?.get("LimitNOFILE");
  const own = /^Max open files\s+(\d+)/m.exec(host.read("/proc/self/limits") ?? "")?.[1];
  const limit = Number(ofUnit ?? own);
  if (!Number.isFinite(limit) && ofUnit !== "infinity") return skipped("the limit cannot be read");
  const text = `${ofUnit === undefined ? "" : "the unit allows "}${ofUnit ?? own} open files`;
  const hint = `LimitNOFILE=131072 ${dropInOf(host)}. A visitor takes one, and another while an origin answers.`;
  if (limit < descriptorsLeast) return failed(text, hint);
  return limit < descriptorsWanted ? warning(text, hint) : ok(text);
}

const waitingLeast = 1_024;

export function checkSysctls({ read }: Host): Finding {
  const { ok, warning } = findingsOf("sysctls");
  const value = Number(read("/proc/sys/net/core/somaxconn") ?? Number.NaN);
  if (value >= waitingLeast) return ok(`net.core.somaxconn = ${value}`);
  const found = Number.isNaN(value) ? "this kernel has none" : `it is ${value}`;
  return warning(
    `net.core.somaxconn should be at least ${waitingLeast}, and ${found}: visitors are refused when many come at once, or while the agent is restarted`,
    "sysctl -w net.core.somaxconn=4096, and the same in a file of /etc/sysctl.d.",
  );
}

type Unit = ReadonlyMap<string, string>;
const { ok, failed, warning, skipped } = findingsOf("unit");

/** Checks the unit against what the settings need of it, and whether it runs. */
export async function checkUnit(settings: AgentSettings, host: Host): Promise<readonly Finding[]> {
  const unit = await host.unit();
  if (unit === undefined)
    return [skipped(`there is no unit ${unitNameOf(host.place)} on this host`)];
  const unread = unreadText(unit, unitNameOf(host.place));
  if (unread !== undefined) return [await unreadFinding(unread, unit, host)];
  const dropIn = dropInOf(host);
  const faults = [
    ...readableFaults(settings, unit, dropIn),
    ...stateFaults(settings, unit, host),
    ...powerFaults(settings, unit, dropIn),
  ];
  return [
    ...(faults.length === 0 ? [ok("it shows and allows what the settings need")] : faults),
    ...runFindings(unit, host),
  ];
}

/** Judges a unit that systemd cannot start, by whether an agent runs: settings that no unit has need none. */
async function unreadFinding(unread: string, unit: Unit, host: Host): Promise<Finding> {
  if (placeOfConfig(agentProgram, host.config) === undefined) return skipped(unread);
  const name = unitNameOf(host.place);
  const up = unreadWhileUp(unit, name);
  if (up !== undefined) return (up.isEnding ? failed : warning)(up.text, up.hint);
  const hint = unreadRemedy(unit, name);
  const { kind } = await host.agent();
  if (kind === "absent") return failed(`${unread}, and no agent runs: nobody is served`, hint);
  if (kind === "denied") {
    // What systemd says of a unit that somebody forbade it says to every user; one that is missing may never have been wanted.
    if (unit.get("LoadState") === "masked")
      return failed(
        `${unread}, and does not run: nobody is served, unless an agent runs without it`,
        hint,
      );
    return unseen("unit", `${unread}; whether an agent runs without it`);
  }
  return skipped(`${unread}: the agent runs without it`);
}

/** Says whether the unit runs. Stopped is no fault: the doctor is asked before the first start, too. */
function runFindings(unit: Unit, { place }: Host): readonly Finding[] {
  const name = unitNameOf(place);
  const [active, result = "success"] = [unit.get("ActiveState"), unit.get("Result")];
  const restarts = Number(unit.get("NRestarts") ?? 0);
  const told = restarts === 0 ? "" : `systemd has started it again ${timesText(restarts)}`;
  const again = told === "" ? "" : `; ${told}`;
  const look = `journalctl -u ${name} -n 50 says why.`;
  // Of a start that is under way systemd says "success".
  const ended =
    result === "success"
      ? told || "systemd does not say why"
      : `${meaningOfEnd(endOfMain(unit), true).how}${again}`;
  const isForgotten = unit.get("UnitFileState") === "disabled";
  switch (active) {
    case undefined:
      return [];
    case "active":
    case "reloading":
    case "refreshing":
      return isForgotten
        ? [warning(`it runs${again}, and does not start at a boot`, `systemctl enable ${name}`)]
        : [ok(`it runs${again}`)];
    case "activating":
      return result !== "success" || restarts > 0
        ? [failed(`it does not stay up: ${ended}`, look)]
        : [warning("it is starting", `If that does not end: ${look}`)];
    case "inactive":
    case "deactivating":
      if (result === "success" && unit.get("UnitFileState") === "enabled")
        return [
          warning(
            "it starts at a boot, and does not run now: nobody is served",
            `systemctl start ${name}; where that starts nothing, systemctl status ${name} names what is missing.`,
          ),
        ];
      if (result === "success")
        return [skipped(`it does not run; systemctl enable --now ${name} starts it`)];
      return [failed(`it does not run: ${ended}`, look)];
    default:
      return [failed(`it does not run (${active}): ${ended}`, look)];
  }
}

const timesText = (count: number): string => (count === 1 ? "once" : `${count} times`);

const dropInOf = ({ place }: Host): string => `in a drop-in (systemctl edit ${unitNameOf(place)})`;

function readableFaults(settings: AgentSettings, unit: Unit, dropIn: string): readonly Finding[] {
  const paths = [
    ...settings.sites.flatMap(({ views_dir: views, devlove_file: devlove }) => [views, devlove]),
    ...(settings.central_ca_file === undefined ? [] : [settings.central_ca_file]),
  ];
  return paths.flatMap((path) => {
    if (/^\/(?:home|root|run\/user)(?:\/|$)/.test(path) && unit.get("ProtectHome") === "yes")
      return [
        failed(
          `the unit sees no home directories, and ${path} is in one`,
          `ProtectHome=read-only ${dropIn}, or move it to /srv.`,
        ),
      ];
    if (/^\/(?:var\/)?tmp(?:\/|$)/.test(path) && unit.get("PrivateTmp") === "yes")
      return [
        failed(`the unit has a /tmp of its own, and ${path} is not in it`, "Move it to /srv."),
      ];
    const isShared =
      (unit.get("SupplementaryGroups") ?? "") !== "" || unit.get("DynamicUser") === "no";
    if (isShared) return [];
    let fault: string | undefined;
    try {
      fault = othersFault(path);
    } catch (error) {
      if (systemCode(error) !== "EACCES") throw error;
      return [unseen("unit", `this user may not look at ${path}`)];
    }
    return fault === undefined
      ? []
      : [
          failed(
            fault,
            `Let others read it (chmod o+rX), or name its group by SupplementaryGroups= ${dropIn}.`,
          ),
        ];
  });
}

/** Says why a user that owns nothing cannot read a path; undefined if it can. Throws EACCES where this one may not look, as behind a link. */
function othersFault(path: string): string | undefined {
  // From the root on: what lies in a directory that others may not enter is hidden to those who ask as one of them, too.
  const parents: string[] = [];
  for (let at = dirname(path); ; at = dirname(at)) {
    parents.unshift(at);
    if (dirname(at) === at) break;
  }
  for (const at of parents) {
    const parent = statSync(at, { throwIfNoEntry: false });
    if (parent !== undefined && (parent.mode & 0o001) === 0)
      return `the unit's user may not enter ${at}, which ${path} is in`;
  }
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined)
    return lstatSync(path, { throwIfNoEntry: false }) === undefined
      ? `${path} does not exist`
      : `${path} is a link to nothing`;
  const wanted = found.isDirectory() ? 0o005 : 0o004;
  return (found.mode & wanted) === wanted ? undefined : `the unit's user may not read ${path}`;
}

function stateFaults(settings: AgentSettings, unit: Unit, host: Host): readonly Finding[] {
  const dropIn = dropInOf(host);
  const { shown: secretShown, source } = host.place.secret;
  const { state_dir: state, secret16_file: secret } = settings;
  const faults: Finding[] = [];
  const owned = (unit.get("StateDirectory") ?? "").split(" ").map((name) => `/var/lib/${name}`);
  if (!owned.some((path) => state === path || state.startsWith(`${path}/`)))
    faults.push(
      failed(
        `the unit may write ${owned.join(", ")} alone, and state_dir is ${state}`,
        `StateDirectory= or ReadWritePaths= ${dropIn}, or set state_dir to ${owned[0]}.`,
      ),
    );
  const isLoaded = (unit.get("LoadCredential") ?? "").includes("secret16:");
  if (secret === secretShown && !isLoaded)
    faults.push(
      failed(
        "the unit does not hand the secret to the agent",
        `LoadCredential=secret16:${source} ${dropIn}.`,
      ),
    );
  const stopMs = spanMs(unit.get("TimeoutStopUSec") ?? "");
  if (stopMs !== undefined && stopMs < settings["accelerator.drain_grace"] + 20_000)
    faults.push(
      warning(
        `the unit is killed ${stopMs / 1_000} s after its stop, and accelerator.drain_grace alone is ${settings["accelerator.drain_grace"] / 1_000} s`,
        `Raise TimeoutStopSec= ${dropIn}: the last request records are shipped behind it.`,
      ),
    );
  return faults;
}

function powerFaults(settings: AgentSettings, unit: Unit, dropIn: string): readonly Finding[] {
  const faults: Finding[] = [];
  const low = ["accelerator.listen", "accelerator.tls_listen", "metrics.listen"] as const;
  const needsPower = low.some((key) => {
    const port = settings[key]?.port ?? 0;
    return port > 0 && port < 1_024;
  });
  if (needsPower && !/cap_net_bind_service/i.test(unit.get("AmbientCapabilities") ?? ""))
    faults.push(
      failed(
        "the unit may not listen on ports below 1024",
        `AmbientCapabilities=CAP_NET_BIND_SERVICE ${dropIn}.`,
      ),
    );
  if (unit.get("MemoryDenyWriteExecute") === "yes")
    faults.push(
      failed(
        "MemoryDenyWriteExecute=yes ends Node at its start",
        `MemoryDenyWriteExecute=no ${dropIn}.`,
      ),
    );
  const families = unit.get("RestrictAddressFamilies") ?? "";
  const missing = ["AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"].filter(
    (family) => families !== "" && !families.split(" ").includes(family),
  );
  if (missing.length > 0)
    faults.push(
      failed(
        `the unit may not use ${missing.join(", ")}`,
        `RestrictAddressFamilies=${missing.join(" ")} ${dropIn} adds them.`,
      ),
    );
  const denied = unit.get("IPAddressDeny") ?? "";
  if (denied !== "")
    faults.push(
      warning(
        `the unit refuses addresses (IPAddressDeny=${denied})`,
        "Visitors, origins and central have to be allowed by IPAddressAllow=.",
      ),
    );
  const memory = Number(unit.get("MemoryMax"));
  const workers = settings["accelerator.workers"] || Math.min(availableParallelism(), 16);
  const needed = settings["cache.memory_max"] + (150 + 50 * workers) * 2 ** 20;
  if (Number.isFinite(memory) && memory < needed)
    faults.push(
      failed(
        `the unit has ${shown(memory)} of memory, and ${workers} workers with cache.memory_max need ${shown(needed)}`,
        `Raise MemoryMax= ${dropIn}, or lower cache.memory_max or accelerator.workers.`,
      ),
    );
  return faults;
}

/** Reads a time span as systemctl shows it: "30s", "1min 30s", "infinity". */
function spanMs(text: string): number | undefined {
  const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000 };
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|min|h)\b/g)];
  if (parts.length === 0) return undefined;
  return parts.reduce((sum, [, count, unit = ""]) => sum + Number(count) * (units[unit] ?? 0), 0);
}
