// Tells what a clear, or its dry run, came to at each instance, for a person to read.

import type {
  ClearDeployment,
  ClearInstance,
  ClearNamed,
  ClearState,
  DryRun,
} from "../wire/customer/clear.ts";
import { plain, textTable, type Row } from "./text.ts";

/** `deleting`: nothing that matches is served any more, but its deletion is not proved yet. */
type Standing = "proved" | "deleting" | "awaited" | "failed";

/** One line of the table: an instance, or a deployment if none of its instances was ever seen. */
type Place = {
  readonly deployment: number;
  readonly told: ClearInstance | ClearDeployment;
  readonly standing: Standing;
};

export type Proved = { readonly count: number; readonly of: number };

export function provedOf(state: ClearState): Proved {
  const places = placesOf(state);
  return {
    count: places.filter(({ standing }) => standing === "proved").length,
    of: places.length,
  };
}

/** Returns whether nothing more is awaited: each instance proved it, or never will. */
export function isSettled(state: ClearState): boolean {
  return placesOf(state).every(({ standing }) => standing === "proved" || standing === "failed");
}

function placesOf({ deployments }: ClearState): readonly Place[] {
  return deployments.flatMap((deployment) => {
    const { deployment_site_id: id, instances } = deployment;
    return (instances.length === 0 ? [deployment] : instances).map((told) => ({
      deployment: id,
      told,
      standing: standingOf(told),
    }));
  });
}

function standingOf({ state, matched, verified }: ClearInstance | ClearDeployment): Standing {
  if (state === "failed" || verified === false) return "failed";
  if (state === "pending") return "awaited";
  // Without a count, a snapshot proved it: what was cached went with it, and no deletion is reported.
  return verified === true || matched === null ? "proved" : "deleting";
}

/** Returns whether the instance took central's state as a whole, the clear with it, and counted nothing. */
function isBySnapshot({ state, matched }: ClearInstance | ClearDeployment): boolean {
  return state === "applied" && matched === null;
}

function snapshotText({ deployment, told }: Place): string {
  const name = nameOf(told);
  const where = name === undefined ? "" : `, instance ${plain(name)}`;
  return `deployment ${deployment}${where}: took the clear with central's snapshot; whatever it had cached of the domain by then is not used, and nothing is counted (–)`;
}

export function clearHeading({ clear_id: id, domain, ...named }: ClearState): string {
  return `clear ${plain(id)} of ${plain(domain)}: ${namedText(named)}\n`;
}

type Named = Pick<ClearState, keyof ClearNamed | "patterns">;

/** The most names that a heading has; a clear may have a thousand. */
const namesShownMax = 20;

function namedText({
  patterns,
  urls = [],
  prefixes = [],
  tags = [],
  hosts = [],
  everything,
  soft,
}: Named): string {
  const names = [
    ...(everything === true ? ["everything"] : []),
    ...urls,
    ...prefixes.map((prefix) => `all below ${prefix}`),
    ...tags.map((tag) => `the tag ${tag}`),
    ...hosts.map((host) => `everything of ${host}`),
    ...patterns,
  ];
  const more = names.length - namesShownMax;
  const shown = names.slice(0, namesShownMax).map(plain).join("  ");
  const all = more > 0 ? `${shown}  and ${more} more` : shown;
  return soft === true ? `${all}  (softly)` : all;
}

export function clearText(state: ClearState): string {
  const places = placesOf(state);
  if (places.length === 0) return "no deployment serves the domain: there is nothing to clear\n";
  const names = [
    "deployment",
    "instance",
    "state",
    "matched",
    "removed",
    "blocked_in_flight",
    "invisible",
    "gone",
    "verified",
    "widened",
  ];
  const { count, of } = provedOf(state);
  const open = places.filter(({ standing }) => standing !== "proved");
  return [
    textTable(places.map(rowOf), names, ""),
    `\nproved by ${count} of ${of} instances${open.length === 0 ? "" : "; missing:"}\n`,
    ...open.map((place) => `  ${missingText(place)}\n`),
    ...(places.some(({ told }) => told.widened === true && !isBySnapshot(told))
      ? ["widened: more than what was named was cleared, up to everything cached of the domain\n"]
      : []),
    ...places.filter(({ told }) => isBySnapshot(told)).map((place) => `${snapshotText(place)}\n`),
  ].join("");
}

function rowOf({ deployment, told }: Place): Row {
  const { state, matched, removed, verified } = told;
  return {
    deployment,
    instance: nameOf(told),
    state,
    matched,
    removed,
    blocked_in_flight: told.blocked_in_flight,
    invisible: duration(told.invisible_ms),
    gone: duration(told.gone_ms),
    verified,
    widened: state === "applied" ? told.widened === true : null,
  };
}

function nameOf(told: ClearInstance | ClearDeployment): string | undefined {
  return "instance_id" in told ? told.instance_id : undefined;
}

function duration(ms: number | null): string | null {
  if (ms === null) return null;
  return ms < 10_000 ? `${Math.round(ms * 10) / 10} ms` : `${Math.round(ms / 100) / 10} s`;
}

function missingText({ deployment, told, standing }: Place): string {
  const name = nameOf(told);
  const where = `deployment ${deployment}${name === undefined ? "" : `, instance ${plain(name)}`}`;
  const seen = told.last_seen === undefined ? "" : `, last seen ${plain(told.last_seen)}`;
  switch (standing) {
    case "awaited":
      return name === undefined
        ? `${where}: no agent was ever seen there`
        : isConnected(told)
          ? `${where}: is connected and has not reported yet${heardText(told)}${seen}`
          : `${where}: has not reported yet${heardText(told)}${seen}`;
    case "deleting":
      return `${where}: nothing that matches is served any more, its deletion goes on`;
    case "failed":
      return told.state === "failed"
        ? `${where}: failed: ${plain(told.error ?? "without a reason")}${seen}`
        : `${where}: after the deletion it could not verify that nothing matches${seen}`;
    case "proved":
      return where;
    default:
      return standing satisfies never;
  }
}

/** An open channel proves no more than when something came over it. */
function heardText(told: ClearInstance | ClearDeployment): string {
  if (!("silent_s" in told) || told.silent_s === undefined) return "";
  return `, was heard last ${told.silent_s} s ago`;
}

const isConnected = (told: ClearInstance | ClearDeployment): boolean =>
  "connected" in told && told.connected;

/** Says what is to be done about a clear that some instances did not prove. */
export function unprovenHint(state: ClearState): string {
  const awaited = placesOf(state).filter(({ standing }) => standing === "awaited");
  const hints = [
    ...(awaited.some(({ told }) => isConnected(told))
      ? [
          "An instance that is connected was heard within 20 s, and gets the clear unless it has been frozen or cut off since: then it serves what it has. See `accel-agent status` and the agent's log there.",
        ]
      : []),
    ...(awaited.some(({ told }) => !isConnected(told))
      ? [
          "An instance that is away applies the clear when it reaches central again, and serves what it has until then.",
        ]
      : []),
    "`--clear-id` asks again later and clears nothing.",
  ];
  return hints.join(" ");
}

type Counted = DryRun["deployments"][number];

/** Counts deployments, not instances: a deployment that cannot be reached tells of no instance. */
export function answeredOf({ deployments }: DryRun): Proved {
  return {
    count: deployments.filter(({ state }) => state === "answered").length,
    of: deployments.length,
  };
}

export function dryRunText(answer: DryRun): string {
  const { domain, deployments } = answer;
  const heading = `dry run at ${plain(domain)}, nothing is cleared: ${namedText(answer)}\n`;
  if (deployments.length === 0) return `${heading}no deployment serves the domain\n`;
  const { count, of } = answeredOf(answer);
  const names = ["deployment", "instance", "state", "matched", "note"];
  return [
    heading,
    textTable(deployments.flatMap(countRows), names, ""),
    ...deployments.map(samplesText),
    `\ncounted at ${count} of ${of} deployments\n`,
  ].join("");
}

function countRows({
  deployment_site_id: deployment,
  instances,
  ...told
}: Counted): readonly Row[] {
  if (instances.length === 0) {
    const note = told.last_seen === undefined ? "never seen" : `last seen ${told.last_seen}`;
    return [{ deployment, state: told.state, matched: told.matched, note }];
  }
  return instances.map(({ instance_id: instance, state, matched, ...more }) => {
    const widened =
      more.over_budget === true ? "over budget: the clear would be widened" : undefined;
    return { deployment, instance, state, matched, note: more.error ?? widened };
  });
}

/** Lists the newest entries that match; central joins those of a deployment's instances. */
function samplesText({ deployment_site_id: id, samples }: Counted): string {
  if (samples.length === 0) return "";
  const rows = samples.map(({ path, query, pattern, ...sample }) => ({
    ...sample,
    url: query === "" ? path : `${path}?${query}`,
    exactly: pattern,
  }));
  const names = ["url", "kind", "mime", "size", "stored_at", "exactly"];
  return `\nnewest matches of deployment ${id}, each with the pattern of its URL alone:\n${textTable(rows, names, "")}`;
}
