// The agent's status for a person: what needs attention first, then one line for each part with units and durations, and tables where there are lists. A part that
// this release does not know is shown as it is. Scripts read `--json`.

import { renderFacts } from "./control.ts";
import { unprovenText } from "./log-text.ts";
import {
  ageOf,
  clockOf,
  count,
  counted,
  durationOf,
  factsOf,
  painted,
  said,
  partLines,
  sizeOf,
  warningsText,
  type Facts,
  type StatusView,
} from "./status-words.ts";
import { heardWithinMs } from "../wire/channel.ts";
import { textTable, type Row } from "./text.ts";

/** What systemd says of the unit that the agent does not know. */
type UnitTrouble = { readonly text: string; readonly hint: string };

/** `status` is as the agent gives it; what is missing prints as a dash. */
export function agentStatusText(
  status: Facts,
  { unit, ...view }: StatusView & { readonly unit?: UnitTrouble | undefined },
): string {
  const { parts: told, warnings, serving: served, ...head } = status;
  const parts = factsOf(told);
  const known = sections.flatMap(([name, write]) =>
    name in parts
      ? [partLines(name, write(factsOf(parts[name]), { ...view, started: head["started"] }))]
      : [],
  );
  const names = new Set<string>(sections.map(([name]) => name));
  const lists = [setsText(parts["sets"])];
  const others = Object.entries(parts).filter(
    ([name]) => !names.has(name) && name !== "sets" && name !== "workers",
  );
  return [
    headText(head, factsOf(served), view),
    unit === undefined ? "" : partLines("unit", [painted(unit.text, 31, view.colour), unit.hint]),
    warningsText(warnings, view),
    ...known,
    ...others.map(([name, facts]) => `${name}:\n${renderFacts(facts, "  ")}`),
    domainsText(factsOf(served)["domains"], view),
    ...lists,
  ].join("");
}

function headText(head: Facts, serving: Facts, { now, colour }: StatusView): string {
  const { program, version, name16, started, ready } = head;
  const state = ready === true ? painted("ready", 32, colour) : painted("not ready", 31, colour);
  const secure =
    serving["tls_listen"] === null ? "no HTTPS" : `https ${said(serving["tls_listen"])}`;
  return [
    `${said(program)} ${said(version)}: ${state}, up for ${ageOf(started, now)}\n`,
    partLines("site", [
      `${said(name16)}, ${said(serving["workers"])} workers, http ${said(serving["listen"])}, ${secure}, state ${said(serving["state_version"])}`,
    ]),
  ].join("");
}

/** `started`: when the agent started. */
type SectionView = StatusView & { readonly started: unknown };
type Section = readonly [
  name: string,
  write: (facts: Facts, view: SectionView) => readonly string[],
];

/** The parts in the order in which they are shown. */
const sections: readonly Section[] = [
  ["link", linkText],
  ["cache", cacheText],
  ["spool", spoolText],
  ["vault", vaultText],
  ["scrub", scrubText],
  [
    "decisions",
    ({ kept, dropped }) => [`${count(kept)} kept to be explained, ${count(dropped)} dropped`],
  ],
];

function linkText(facts: Facts, { now, started }: SectionView): readonly string[] {
  const { state, since, central_url: url, applied_seq: applied, head_seq: head } = facts;
  const { lag, head_told_at: toldAt, receipts_unacknowledged: receipts } = facts;
  // An agent that is not connected knows the head of the journal only as it was last told.
  const silence = silenceText(facts["heard_at"], state, now);
  const isOld = (state === "disconnected" || silence !== "") && typeof toldAt === "string";
  const asOf = isOld ? `, when last told, ${ageOf(toldAt, now)} ago` : "";
  const age =
    state === "disconnected"
      ? sinceText(since, isNeverHeard(facts, started), now)
      : `for ${ageOf(since, now)}`;
  const lines = [
    `${said(state)}${since === undefined ? "" : ` ${age}`}${silence}${url === undefined ? "" : `, ${said(url)}`}${nextTryText(facts["next_try_at"], state, now)}`,
    head === null
      ? `journal ${said(applied)}; how far central's has come is not known yet`
      : `journal ${said(applied)} of ${said(head)}, ${lag === 0 ? "nothing behind" : `${said(lag)} behind`}${asOf}`,
  ];
  if (typeof receipts === "number" && receipts > 0)
    lines.push(`not taken by central yet: ${counted(receipts, "receipt")}`);
  const { seq, kind, since: takenAt } = factsOf(facts["oldest_unfinished"]);
  if (seq !== undefined)
    lines.push(
      `unfinished: entry ${said(seq)} (${said(kind)}) ${sinceStart(takenAt, started, now)}`,
    );
  const error = factsOf(facts["last_error"]);
  if (error["code"] !== undefined) {
    const over =
      typeof error["over_at"] === "string" ? `, over ${ageOf(error["over_at"], now)} ago` : "";
    lines.push(`last error ${ageOf(error["at"], now)} ago${over}: ${said(error["message"])}`);
  }
  return lines;
}

/** What begins so soon after the start began with it: the agent does not know what was before. */
const withStartMs = 10_000;

function sinceStart(since: unknown, started: unknown, now: Date): string {
  return sinceText(since, agoMs(since, started) < withStartMs, now);
}

const agoMs = (since: unknown, started: unknown): number =>
  Date.parse(said(since)) - Date.parse(said(started));

/** Whether a link has never been up: a channel may come and go in the first seconds. An agent that does not tell when it heard of central is taken by its start. */
function isNeverHeard({ heard_at: heardAt, since }: Facts, started: unknown): boolean {
  return heardAt === undefined ? agoMs(since, started) <= 0 : heardAt === null;
}

function sinceText(since: unknown, isStart: boolean, now: Date): string {
  const start = isStart ? "the start, " : "";
  return `since ${start}${clockOf(since)} (${ageOf(since, now)} ago)`;
}

/** A link that is up proves no more than when something came over it: a way that was cut says nothing. */
function silenceText(heardAt: unknown, state: unknown, now: Date): string {
  if (state !== "connected" || typeof heardAt !== "string") return "";
  if (now.getTime() - Date.parse(heardAt) <= heardWithinMs) return "";
  return `, but nothing was heard of central for ${ageOf(heardAt, now)}`;
}

function nextTryText(at: unknown, state: unknown, now: Date): string {
  if (typeof at !== "string") return "";
  const left = durationOf(Math.max(0, Date.parse(at) - now.getTime()) / 1_000);
  return state === "polling" ? `; a channel is tried again in ${left}` : `; next try in ${left}`;
}

function cacheText(facts: Facts): readonly string[] {
  const { is_open: isOpen, entries, bytes, disk_max: max, clear_no: no } = facts;
  // Its figures would be those of an empty one.
  if (isOpen !== true)
    return [
      "closed: everything is fetched from the origin; what it holds, and its clears, are told when it is open",
    ];
  const unfinished = facts["unfinished_clears"];
  const { withheld_bytes: withheld, wal_bytes: wal } = facts;
  const share = typeof bytes === "number" && typeof max === "number" && max > 0 ? bytes / max : 0;
  return [
    `open, ${count(entries)} entries, ${sizeOf(bytes)} of ${sizeOf(max)} (${Math.round(share * 100)} %)${typeof wal === "number" ? `, and ${sizeOf(wal)} beside it for changes of the index` : ""}`,
    ...(typeof withheld === "number" && withheld > 0
      ? [`${sizeOf(withheld)} of that are withheld, for the disk lacks room`]
      : []),
    `clears: number ${said(no)}${typeof unfinished === "number" && unfinished > 0 ? `, ${count(unfinished)} unfinished` : ", none unfinished"}`,
  ];
}

function spoolText(facts: Facts): readonly string[] {
  const { accepted, committed, spooled, in_memory: inMemory, dropped, bytes } = facts;
  const { oldest_s: oldest, shipping, lanes_total: lanes } = facts;
  const lost = Object.entries(factsOf(dropped)).filter(([, number]) => Number(number) > 0);
  const sum = lost.reduce((total, [, number]) => total + Number(number), 0);
  const why = lost.map(([reason, number]) => `${reason} ${count(number)}`).join(", ");
  const { unproven, unknown } = unprovenText({
    unproven: facts["unproven"] ?? 0,
    unknown: facts["unknown"] ?? 0,
  });
  return [
    `${count(accepted)} accepted = ${count(committed)} committed + ${count(spooled)} spooled + ${count(inMemory)} in memory + ${count(sum)} dropped${why === "" ? "" : ` (${why})`}`,
    ...(unproven === undefined ? [] : [`unproven: ${unproven}`]),
    ...(unknown === undefined ? [] : [`unknown: ${unknown}`]),
    `shipping ${said(shipping)}, ${sizeOf(bytes)} in ${said(lanes)} lanes, the oldest record waits for ${durationOf(oldest)}, ${canaryText(facts)}`,
  ];
}

/** An agent of the release before does not tell the round trip. */
function canaryText({ canary_age_s: age, canary_round_trip_ms: roundTrip }: Facts): string {
  if (typeof age !== "number") return "no canaries";
  return roundTrip === null
    ? `no canary has arrived since the start ${durationOf(age)} ago`
    : `canary ${durationOf(age)} ago`;
}

function vaultText(facts: Facts, { now }: StatusView): readonly string[] {
  const { keys, locked_keys: locked, certificates, next_to_expire: next } = facts;
  const first = factsOf(Array.isArray(next) ? next[0] : undefined);
  const expiry =
    first["not_after"] === undefined
      ? ""
      : `, the first to expire in ${durationOf((Date.parse(said(first["not_after"])) - now.getTime()) / 1_000)}: ${said(first["names"])}`;
  return [
    `${counted(keys, "key")}${typeof locked === "number" && locked > 0 ? ` (${locked} do not open)` : ""}, ${counted(certificates, "certificate")}${expiry}`,
  ];
}

function scrubText({ schedule, state, last }: Facts, { now }: StatusView): readonly string[] {
  const ended = factsOf(last)["ended"] ?? factsOf(last)["finished"] ?? factsOf(last)["at"];
  const before = typeof ended === "string" ? `, the last pass ended ${ageOf(ended, now)} ago` : "";
  return [`${said(state)}, schedule ${said(schedule)}${before}`];
}

function domainsText(domains: unknown, { now }: StatusView): string {
  const rows = (Array.isArray(domains) ? domains : []).map((one): Row => {
    const { domain, hosts, version, files, bots, viewset } = factsOf(one);
    const { viewset_name: name, standing, since } = factsOf(version);
    const { mode, unknown_bots: unknown } = factsOf(bots);
    return {
      domain,
      hosts: Array.isArray(hosts) ? hosts.length : 0,
      version: name ?? viewset,
      standing: standing ?? "–",
      for: since === undefined ? "–" : ageOf(since, now),
      files,
      bots: mode,
      unreviewed_bots: unknown,
    };
  });
  const names = [
    "domain",
    "hosts",
    "version",
    "standing",
    "for",
    "files",
    "bots",
    "unreviewed_bots",
  ];
  return `\n${textTable(rows, names, "no domains are linked to this deployment site")}`;
}

function setsText(sets: unknown): string {
  if (!Array.isArray(sets) || sets.length === 0) return "";
  const rows = sets.map(factsOf);
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return `\n${textTable(rows, names, "")}`;
}
