// What `why` and `bots` say about visitors, for a person to read.

import { botClassWords } from "../core/serving/bot-class-words.ts";

type PolicySaid = { readonly kind: string; readonly changed_at: string | null };
type SetSaid = {
  readonly host: string;
  readonly kind: string;
  readonly version: number;
  readonly range: string | null;
  readonly since: string | null;
  readonly version_now: number | null;
  readonly changed_at: string | null;
};
type Told = {
  readonly host: string;
  readonly verdict: string;
  readonly reason: string;
  readonly bot: string | null;
  readonly what: string;
  readonly why: string;
  readonly would_change_it: readonly string[];
  readonly set: SetSaid | null;
  readonly policy: PolicySaid | null;
};
type LimitSaid = { readonly rule: string; readonly mode: string; readonly left: number | null };
/** Agents of older releases state no limits. */
type OnHost = Told & { readonly mode: string; readonly limits?: readonly LimitSaid[] };
type ShortDecision = {
  readonly decision: string;
  readonly at: string;
  readonly host: string;
  readonly verdict: string;
  readonly reason: string;
  readonly bot: string | null;
  readonly user_agent: string | null;
};

export type Checked = {
  readonly address: string;
  readonly user_agent: string | null;
  /** Agents of older releases state no class. */
  readonly claims: { readonly name: string; readonly class?: string } | null;
  readonly hosts: readonly OnHost[];
  /** Present only if past decisions were asked for. */
  readonly decisions?: { readonly total: number; readonly newest: readonly ShortDecision[] };
};
export type Decided = ShortDecision &
  Told & { readonly address: string; readonly now: OnHost | null };
export type Listed = {
  readonly sets: readonly {
    readonly host: string;
    readonly kind: string;
    readonly version: number;
    readonly count: number;
    readonly changed_at: string | null;
    readonly in_force: number | null;
  }[];
  readonly hosts: readonly {
    readonly host: string;
    readonly mode: string;
    readonly unknown_bots: string;
    /** Agents of older releases state none. */
    readonly classes?: Readonly<Record<string, string>>;
    readonly said_by: string | null;
    readonly allowed_pairs: number;
    readonly denied_pairs: number;
  }[];
  readonly policies_changed_at: string | null;
};

export function checkedText({
  address,
  user_agent: agent,
  claims,
  hosts,
  decisions,
}: Checked): string {
  const kind = claims?.class === undefined ? "" : `, a ${oneOf(claims.class)}`;
  const claim = claims === null ? "no bot" : `the bot ${printable(claims.name)}${kind}`;
  const lines = [
    address,
    agent === null
      ? "  without a user agent (--ua gives one; where the address is in no set, it decides)"
      : `  user agent ${quoted(agent)}, which claims to be ${claim}`,
    ...(hosts.length === 0 ? ["  no host is served here"] : hosts.flatMap(hostLines)),
  ];
  if (decisions !== undefined) lines.push(...decisionLines(decisions));
  return `${lines.join("\n")}\n`;
}

export function decidedText(decided: Decided): string {
  const { decision, at, host, address, user_agent: agent, now } = decided;
  const lines = [
    `decision ${decision}`,
    `  ${at}, ${host}`,
    `  address ${address === "" ? "none" : address}, ${agent === null ? "without a user agent" : `user agent ${quoted(agent)}`}`,
    `  then: ${decided.what} (${decided.reason})`,
    ...toldLines(decided),
  ];
  if (now === null) lines.push(`  now: ${host} is not served here any more`);
  else {
    lines.push(`  now: ${now.what} (${now.reason}), mode ${now.mode}`);
    if (now.why !== decided.why) lines.push(`    ${printable(now.why)}`);
    lines.push(...limitLines(now.limits ?? []));
  }
  return `${lines.join("\n")}\n`;
}

export function listedText({ sets, hosts, policies_changed_at: changedAt }: Listed): string {
  const setLines = sets.map(({ host, kind, version, count, changed_at: at, in_force: inForce }) => {
    const force = inForce === version ? "in force" : `version ${inForce ?? "none"} in force`;
    return `  ${kind.padEnd(3)}  ${host}  version ${version}, ${count} ${count === 1 ? "element" : "elements"}, changed ${at ?? "before this was noted"}, ${force}`;
  });
  const hostLinesOf = hosts.map(
    ({
      host,
      mode,
      unknown_bots: unknown,
      classes = {},
      said_by: by,
      allowed_pairs: allowed,
      denied_pairs: denied,
    }) =>
      `  ${host}  mode ${mode}, unknown bots ${unknown}${classText(classes)}${by === null ? "" : ` by ${by}`}, pairs: ${allowed} allowed, ${denied} denied`,
  );
  return [
    sets.length === 0 ? "sets: none" : "sets:",
    ...setLines,
    hosts.length === 0 ? "hosts: none" : "hosts:",
    ...hostLinesOf,
    `policies changed ${changedAt ?? "at a time that was not noted"}`,
    "",
  ].join("\n");
}

/** What a bot of a class is called. A later agent may know other classes. */
function oneOf(botClass: string): string {
  const words: Readonly<Record<string, { readonly one: string }>> = botClassWords;
  return words[botClass]?.one ?? botClass;
}

function classText(classes: Readonly<Record<string, string>>): string {
  const said = Object.entries(classes).map(([name, word]) => `, ${oneOf(name)} ${word}`);
  return said.join("");
}

function hostLines(told: OnHost): readonly string[] {
  return [
    `  ${told.host}: ${told.what} (${told.reason}), mode ${told.mode}`,
    ...toldLines(told),
    ...limitLines(told.limits ?? []),
  ];
}

function limitLines(limits: readonly LimitSaid[]): readonly string[] {
  if (limits.length === 0) return [];
  const lines = limits.map(({ rule, mode, left }) => {
    const monitored = mode === "monitor" ? ", mode monitor" : "";
    return `      ${printable(rule)}${monitored}${left === null ? "" : `; ${left} more now`}`;
  });
  return ["    limits of requests:", ...lines];
}

function toldLines({ why, set, policy, would_change_it: changes }: Told): readonly string[] {
  return [
    `    why    ${printable(why)}`,
    ...(set === null ? [] : [`    set    ${setText(set)}`]),
    ...(policy === null || policy.changed_at === null
      ? []
      : [`    policy known since ${policy.changed_at}`]),
    "    what would change it:",
    ...changes.map((change) => `      ${printable(change)}`),
  ];
}

function setText({
  host,
  kind,
  version,
  range,
  since,
  version_now: now,
  changed_at: at,
}: SetSaid): string {
  const held =
    range === null
      ? "no element of this bot holds the address now"
      : `${range} is in it since ${since ?? "before this was noted"}`;
  const moved =
    now === version
      ? `version ${version} since ${at ?? "before this was noted"}`
      : `version ${version}, now ${now ?? "gone"}${at === null ? "" : ` since ${at}`}`;
  return `${kind} of ${host}, ${moved}; ${held}`;
}

function decisionLines({ total, newest }: NonNullable<Checked["decisions"]>): readonly string[] {
  if (total === 0) return ["  decisions about it: none are kept"];
  return [
    `  decisions about it: ${total}${total > newest.length ? `, the newest ${newest.length}` : ""}:`,
    ...newest.map(
      ({ decision, at, host, verdict, reason, bot, user_agent: agent }) =>
        `    ${at}  ${decision}  ${host}  ${verdict} ${reason}${bot === null ? "" : `  ${printable(bot)}`}${agent === null ? "" : `  ${quoted(agent)}`}`,
    ),
  ];
}

/** Replaces what could steer a terminal, because visitors choose what they call themselves. */
function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\uFFFD");
}

const quoted = (text: string): string => `"${printable(text)}"`;
