// Central's status for a person: what needs attention first, then logs and releases, and a line for each host. Scripts read `--json`.

import {
  ageOf,
  count,
  durationOf,
  factsOf,
  said,
  partLines,
  sizeOf,
  warningsText,
  type Facts,
  type StatusView,
} from "./status-words.ts";
import { textTable, type Row } from "./text.ts";

/** `status` is as central gives it; what is missing prints as a dash. */
export function centralStatusText(status: Facts, view: StatusView): string {
  const { version, started, listen, base_url: url, epoch, restored, logs } = status;
  const { newest_package: newest, deployment_sites: sites, warnings } = status;
  const isStoreSilent = status["store_answers"] === false;
  const { when_backed_up: from, when_restored: when, cause } = factsOf(restored);
  return [
    `accel-central ${said(version)}: up for ${ageOf(started, view.now)}\n`,
    partLines("service", [
      `http ${said(listen)}, ${said(url)}, ${isStoreSilent ? `its store does not answer: ${said(status["store"])}` : `epoch ${said(epoch).slice(0, epochShown)}`}`,
    ]),
    ...(when === undefined
      ? []
      : [
          partLines("restored", [
            cause === "failover"
              ? `${ageOf(when, view.now)} ago, another PostgreSQL took over: what was changed between ${said(from)} and then may be lost`
              : `${ageOf(when, view.now)} ago, from the backup of ${said(from)}: what was changed between is lost`,
          ]),
        ]),
    centralsText(status["centrals"], view),
    warningsText(warnings, view),
    partLines("logs", [logsText(factsOf(logs))]),
    ...(isStoreSilent
      ? ["\nhosts, packages and restores are not known while the store does not answer\n"]
      : [partLines("packages", [packagesText(newest)]), sitesText(sites, view)]),
  ].join("");
}

const packagesText = (newest: unknown): string =>
  newest === null ? "none" : `the newest release is ${said(newest)}`;

const epochShown = 8;

/** The other centrals at the store, and what this one does for all; nothing for one that is alone. */
function centralsText(centrals: unknown, { now }: StatusView): string {
  const { others, jobs } = factsOf(centrals);
  if (!Array.isArray(others)) return "";
  const lines = others.map(factsOf).map(({ address, version, started, beats }) => {
    const how =
      beats === false
        ? "is gone: it beats no more"
        : beats === null
          ? "it is not known whether it beats"
          : `up for ${ageOf(started, now)}`;
    return `${said(address)} ${said(version)}, ${how}`;
  });
  const done = Array.isArray(jobs) && jobs.length > 0 ? jobs.map(said).join(", ") : "nothing";
  return partLines("centrals", [
    ...(lines.length === 0 ? ["no other one is at the store"] : lines),
    `this one does for all: ${done}`,
  ]);
}

function logsText({ days, bytes, queue_bytes: waiting, failing, place }: Facts): string {
  // A thread that waits for a database that is away answers nobody meanwhile.
  const silent =
    typeof failing === "string"
      ? "how much is kept is not known now"
      : typeof place === "string" && place.startsWith("postgres:")
        ? `how much is kept is not known now: ${place} does not answer, or the log thread that asks it`
        : "the log thread does not answer";
  const kept =
    days === undefined
      ? silent
      : `${sizeOf(bytes)} of ${count(days)} day${days === 1 ? "" : "s"}, ${sizeOf(waiting)} waiting`;
  return failing === null || failing === undefined ? kept : `${kept}; not stored: ${said(failing)}`;
}

/** A line for each host: a site without one has a line of its own. */
function sitesText(sites: unknown, { now }: StatusView): string {
  const rows = (Array.isArray(sites) ? sites : []).flatMap((one): Row[] => {
    const site = factsOf(one);
    const { id, name16, journal_head: head, log_canary_age_seconds: canary } = site;
    const hosts = Array.isArray(site["instances"]) ? site["instances"].map(factsOf) : [];
    const named = { site: id, name16, logs: canary === null ? "–" : durationOf(canary) };
    if (hosts.length === 0) {
      const never = site["last_seen"] === null ? "never joined" : "not seen for a day";
      return [
        { ...named, host: never, name: "–", link: "–", seen: ageText(site["last_seen"], now) },
      ];
    }
    return hosts.map((host) => ({
      ...named,
      host: said(host["instance_id"]).slice(0, hostShown),
      name: hostNameText(host),
      link: host["live"] === true ? "connected" : "away",
      journal: journalText(host, head),
      release: `${said(host["agent_version"])}${host["behind"] === true ? " (behind)" : ""}`,
      seen: ageText(host["last_seen"], now),
      attention: attentionText(host, now),
    }));
  });
  const names = ["site", "name16", "host", "name", "link", "journal", "release", "seen", "logs"];
  const shown = rows.some(({ attention }) => attention !== undefined && attention !== "")
    ? [...names, "attention"]
    : names;
  return `\n${textTable(rows, shown, "no deployment sites")}`;
}

/** Enough to tell hosts of one site apart; `--json` has all of it. */
export const hostShown = 8;

/** The name in the agent's settings, and beside it what the host calls itself, where that is another one; a dash if neither is known. */
export function hostNameText({ server_name: server, host_name: host }: Facts): string {
  const names = [server, host].filter((one) => typeof one === "string" && one !== "");
  return names.length === 0 ? "–" : [...new Set(names)].join(", ");
}

function ageText(at: unknown, now: Date): string {
  return typeof at === "string" ? `${ageOf(at, now)} ago` : "never";
}

function journalText({ applied_seq: applied }: Facts, head: unknown): string {
  if (typeof applied !== "number" || typeof head !== "number") return `– of ${said(head)}`;
  return applied >= head ? `${applied}` : `${applied} of ${head}`;
}

function attentionText(host: Facts, now: Date): string {
  const { seq, kind, since } = factsOf(host["oldest_unfinished"]);
  return [
    ...(host["duplicate"] === true ? ["two hosts use this state directory"] : []),
    ...(seq === undefined ? [] : [`entry ${said(seq)} (${said(kind)}) for ${ageOf(since, now)}`]),
  ].join(", ");
}
