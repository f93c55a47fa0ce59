// How a process of the agent ended, as its successor judges it: in good order, or without having been told to, and by what. Pure.

import type { Severity } from "../../base/health.ts";

/** `host` is a host that went down with the agent; `unknown` is where nobody saw the end, as without systemd. */
export const endCauses = [
  "exit",
  "host",
  "memory",
  "signal",
  "timeout",
  "unknown",
  "watchdog",
] as const;
export type EndCause = (typeof endCauses)[number];

/** What systemd says of an end: $INVOCATION_ID, $SERVICE_RESULT and $EXIT_STATUS of systemd.exec(5), and when it said so. */
export type ServiceEnd = {
  readonly invocation: string;
  readonly result: string;
  readonly status: string;
  readonly at: Date;
};

/** What a process noted of itself last. */
export type AgentRun = {
  /** systemd's id of the run; null where systemd did not start it. */
  readonly invocation: string | null;
  /** The kernel's boot id; null where the kernel does not tell. */
  readonly boot: string | null;
  /** When it was there for certain, ISO 8601. */
  readonly seen: string;
  /** When it ended in good order, ISO 8601; null: it did not, or not yet. */
  readonly ended: string | null;
};

/** An end that nobody asked for. `at` is ISO 8601: when systemd saw it, or else when the next process found it. */
export type UncleanEnd = { readonly at: string; readonly cause: EndCause; readonly how: string };

/** Reads the file that the unit writes at each end (`ExecStopPost=`); undefined where it is not whole. */
export function parseServiceEnd(text: string, at: Date): ServiceEnd | undefined {
  const [invocation = "", result = "", status = ""] = text.trim().split(" ");
  return result === "" ? undefined : { invocation, result, status, at };
}

/** Returns how a process ended that was not told to end; undefined where it ended in good order. */
export function uncleanEnd(
  { invocation, boot, ended }: AgentRun,
  now: { readonly said: ServiceEnd | undefined; readonly boot: string | null; readonly at: Date },
): UncleanEnd | undefined {
  if (ended !== null) return undefined;
  const { said } = now;
  if (said !== undefined && said.invocation === invocation) {
    // It was stopped, and could not note that, as on a full disk.
    if (said.result === "success") return undefined;
    return { at: said.at.toISOString(), ...meaningOf(said) };
  }
  const at = now.at.toISOString();
  return boot !== null && now.boot !== null && boot !== now.boot
    ? { at, cause: "host", how: "the host went down while it ran" }
    : { at, cause: "unknown", how: "it was killed, or failed" };
}

function meaningOf({ result, status }: ServiceEnd): Pick<UncleanEnd, "cause" | "how"> {
  switch (result) {
    case "watchdog":
      return {
        cause: "watchdog",
        how: "systemd's watchdog ended it, because it made no progress",
      };
    case "timeout":
      return { cause: "timeout", how: "systemd ended it, because a start or a stop took too long" };
    case "oom-kill":
      return { cause: "memory", how: "the kernel ended it for want of memory" };
    case "signal":
    case "core-dump": {
      const who = status === "KILL" ? ", by hand or by the kernel for want of memory" : "";
      return { cause: "signal", how: `it was ended by SIG${status}${who}` };
    }
    case "exit-code":
      return { cause: "exit", how: `it failed with exit status ${status}` };
    default:
      return { cause: "unknown", how: `systemd calls the result ${result}` };
  }
}

/** So many ends within this time are an error. */
const often = { count: 3, withinMs: 15 * 60_000 };
/** An end is warned of so long: longer than AccelAgentWarning waits. */
const toldMs = 3_600_000;

export type EndsWarning = {
  readonly severity: Severity;
  readonly text: string;
  /** When the first of the ends that it tells of was. */
  readonly at: string;
};

/** Returns what to warn of; undefined where no end is an hour old or younger. `ends` is oldest first. */
export function endsWarning(ends: readonly UncleanEnd[], now: Date): EndsWarning | undefined {
  const within = (ms: number): readonly UncleanEnd[] =>
    ends.filter(({ at }) => now.getTime() - Date.parse(at) <= ms);
  const told = within(toldMs);
  const [first, last] = [told[0], told.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const { at } = first;
  const crashes = told.filter(({ cause }) => cause !== "host");
  const text = `the agent ended without being told to ${timesText(told)}: ${last.how}`;
  if (crashes.length === 0) return { severity: "info", text, at };
  const lately = within(often.withinMs).filter(({ cause }) => cause !== "host");
  return { severity: lately.length >= often.count ? "error" : "warning", text, at };
}

function timesText(told: readonly UncleanEnd[]): string {
  const [first, last] = [told[0], told.at(-1)];
  return told.length === 1
    ? `at ${last?.at}`
    : `${told.length} times since ${first?.at}, at ${last?.at} for the last time`;
}
