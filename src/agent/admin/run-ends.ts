// How a process of the agent ended, as its successor judges it: in good order, or without having been told to, and by what. Pure.

import type { Beginning, Severity } from "../../base/health.ts";
import { meaningOfEnd, type EndCause, type ServiceEnd } from "../../base/service-ends.ts";

/** What a process noted of itself last. */
export type AgentRun = {
  /** systemd's id of the run; null where systemd did not start it. */
  readonly invocation: string | null;
  /** The kernel's boot id; null where the kernel does not tell. */
  readonly boot: string | null;
  /** When it was there for certain, ISO 8601. */
  readonly seen: string;
  /** Whether it has served. */
  readonly served: boolean;
  /** When it ended in good order, ISO 8601; null: it did not, or not yet. */
  readonly ended: string | null;
};

/** An end that nobody asked for. `invocation` is null where nobody saw it. */
export type UncleanEnd = {
  /** ISO 8601: when systemd saw it, or else when the next process found it. */
  readonly at: string;
  /** Of an end that nobody saw: when the process was there for certain, ISO 8601. A release before did not note it. */
  readonly after?: string;
  readonly cause: EndCause;
  readonly how: string;
  readonly invocation: string | null;
  /** There were others, of which nothing is known. */
  readonly hasMore?: true;
};

/**
 * Returns the ends since a process noted itself that nobody asked for, oldest first: its own, and those of starts behind it that came to an end before they could note
 * anything. `said` is oldest first.
 */
export function uncleanEnds(
  run: AgentRun,
  now: {
    readonly said: readonly ServiceEnd[];
    readonly boot: string | null;
    readonly at: Date;
  },
): readonly UncleanEnd[] {
  const ends = now.said.flatMap((said): readonly UncleanEnd[] => {
    const { at, invocation, result } = said;
    const isOwn = invocation === run.invocation;
    // One that was stopped may not have been able to note that, as on a full disk.
    if (result === "success" || (isOwn && run.ended !== null)) return [];
    return [{ at: at.toISOString(), invocation, ...meaningOfEnd(said, isOwn && run.served) }];
  });
  // The one behind those without room may itself be none to tell of. They could note nothing themselves, so they are starts that failed.
  const told = now.said.some(({ hasMore }) => hasMore) ? atLeast(ends, "start") : ends;
  const wasSeen = now.said.some(({ invocation }) => invocation === run.invocation);
  return run.ended !== null || wasSeen ? told : [unseenEnd(run, now), ...told];
}

/** Marks ends of a kind as not all that there were; where there is none of it, the first of any. */
function atLeast(ends: readonly UncleanEnd[], kind: EndKind): readonly UncleanEnd[] {
  const first = ends.find(({ cause }) => kindOf(cause) === kind) ?? ends[0];
  return ends.map((end) => (end === first ? { ...end, hasMore: true } : end));
}

/** Returns the newest `max` of each kind, in their order; where others were left out, it is not said that these are all. Many starts that fail hide no crash. */
export function newestEnds(ends: readonly UncleanEnd[], max: number): readonly UncleanEnd[] {
  return endKinds.reduce((kept, kind) => {
    const left = new Set(kept.filter(({ cause }) => kindOf(cause) === kind).slice(0, -max));
    return left.size === 0
      ? kept
      : atLeast(
          kept.filter((end) => !left.has(end)),
          kind,
        );
  }, ends);
}

function unseenEnd(
  { boot, seen, served }: AgentRun,
  now: { readonly boot: string | null; readonly at: Date },
): UncleanEnd {
  const end = { at: now.at.toISOString(), after: seen, invocation: null };
  if (boot !== null && now.boot !== null && boot !== now.boot)
    return { ...end, cause: "host", how: "the host went down while it ran" };
  return served
    ? { ...end, cause: "unknown", how: "it was killed, or failed" }
    : { ...end, cause: "start", how: "a start failed, or was killed" };
}

/** So many ends within this time are an error. */
const often = { count: 3, withinMs: 15 * 60_000 };
/** An end is warned of so long: longer than AccelAgentWarning waits. */
const toldMs = 3_600_000;

export type EndsWarning = {
  readonly severity: Severity;
  readonly text: string;
  /** When the first of the ends that it tells of was. */
  readonly began: Beginning;
  /** Whether one of them may have cost anything: a start that failed served nobody. */
  readonly isCostly: boolean;
};

/** What ends are told together: a process that served and came to an end, a host that went down with it, a start that failed. */
const endKinds = ["crash", "host", "start"] as const;
type EndKind = (typeof endKinds)[number];

const kindOf = (cause: EndCause): EndKind =>
  cause === "host" || cause === "start" ? cause : "crash";
const isCrash = ({ cause }: UncleanEnd): boolean => kindOf(cause) === "crash";

const happened: Readonly<Record<EndKind, string>> = {
  crash: "ended without being told to",
  host: "went down with its host",
  start: "failed to start",
};

/** Returns what to warn of; undefined where no end is an hour old or younger. `ends` is oldest first. */
export function endsWarning(ends: readonly UncleanEnd[], now: Date): EndsWarning | undefined {
  const within = (ms: number): readonly UncleanEnd[] =>
    ends.filter(({ at }) => now.getTime() - Date.parse(at) <= ms);
  const told = within(toldMs);
  const first = told[0];
  if (first === undefined) return undefined;
  const began = { since: first.at, notBefore: isSeen(first) ? first.at : (first.after ?? null) };
  const text = `the agent ${toldText(told)}`;
  const isCostly = told.some(({ cause }) => kindOf(cause) !== "start");
  if (!told.some(isCrash)) return { severity: "info", text, began, isCostly };
  const lately = within(often.withinMs).filter(isCrash);
  return { severity: lately.length >= often.count ? "error" : "warning", text, began, isCostly };
}

/** Says of each kind by itself how often it was and how they ended, in the order in which the kinds came first. */
function toldText(told: readonly UncleanEnd[]): string {
  const kinds = Map.groupBy(told, ({ cause }) => kindOf(cause));
  const [only] = kinds.size === 1 ? kinds : [];
  if (only !== undefined) {
    const [kind, ends] = only;
    return `${happened[kind]} ${timesText(ends, "")}: ${howText(ends)}`;
  }
  return [...kinds]
    .map(([kind, ends]) => `${happened[kind]} ${timesText(ends, "once, ")} (${howText(ends)})`)
    .join(", and ");
}

function timesText(told: readonly UncleanEnd[], once: string): string {
  const [first, last] = [told[0], told.at(-1)];
  if (first === undefined || last === undefined) return "";
  const hasMore = told.some((end) => end.hasMore);
  if (told.length === 1 && !hasMore) return `${once}${timeText(last)}`;
  const since = `since ${first.at}${hasMore || !isSeen(first) ? " or before" : ""}`;
  return `${hasMore ? "at least " : ""}${countText(told.length)} ${since}, ${timeText(last)} for the last time`;
}

const isSeen = ({ invocation }: UncleanEnd): boolean => invocation !== null;

/** Says when an end was: of one that nobody saw, as behind a unit that was masked, it is known what it lies between. */
function timeText(end: UncleanEnd): string {
  const { at, after } = end;
  if (isSeen(end)) return `at ${at}`;
  return after === undefined ? `some time before ${at}` : `between ${after} and ${at}`;
}

/** Returns what the log has of when an end was. */
export function loggedTime(end: UncleanEnd): {
  readonly [name in "at" | "after" | "before"]?: string;
} {
  const { at, after } = end;
  if (isSeen(end)) return { at };
  return { ...(after !== undefined && { after }), before: at };
}

/** Says how they ended, the last first, and how often each where they differ. */
function howText(told: readonly UncleanEnd[]): string {
  const hows = new Map<string, number>();
  for (const { how } of told.toReversed()) hows.set(how, (hows.get(how) ?? 0) + 1);
  if (hows.size === 1) return [...hows.keys()].join("");
  return [...hows].map(([how, count]) => `${how} (${countText(count)})`).join("; ");
}

const countText = (count: number): string => (count === 1 ? "once" : `${count} times`);
