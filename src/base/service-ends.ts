// What systemd says of an end of the agent, in the file last-end that the unit writes (`ExecStopPost=`), and by the properties of
// the unit, and what that means. Pure.

import { constants } from "node:os";

/**
 * `host` is a host that went down with the agent; `start` is a start that failed, as where another program has the port; `unknown` is where nobody saw the end, as
 * without systemd.
 */
export const endCauses = [
  "exit",
  "host",
  "memory",
  "signal",
  "start",
  "timeout",
  "unknown",
  "watchdog",
] as const;
export type EndCause = (typeof endCauses)[number];

/** What systemd says of an end: when that was, and $INVOCATION_ID, $SERVICE_RESULT and $EXIT_STATUS of systemd.exec(5). */
export type ServiceEnd = {
  readonly invocation: string;
  readonly result: string;
  readonly status: string;
  readonly at: Date;
  /** Others came before it, for which the unit's file had no room. */
  readonly hasMore?: true;
};

/**
 * Reads what the unit notes, a line at each end (`ExecStopPost=`), oldest first. What is no such line is passed over. Where the file is full the newest line takes the
 * place of the last, with the word `more`: so it is known since when all is in order again.
 */
export function parseServiceEnds(text: string): readonly ServiceEnd[] {
  return text.split("\n").flatMap((line): readonly ServiceEnd[] => {
    const [time = "", invocation = "", result = "", status = "", more] = line.split(" ");
    if (!/^\d{1,12}$/.test(time) || result === "") return [];
    const end = { at: new Date(Number(time) * 1_000), invocation, result, status };
    return [more === "more" ? { ...end, hasMore: true } : end];
  });
}

/** Returns how the main process of a unit ended, by the properties of the unit, in the words of $SERVICE_RESULT and $EXIT_STATUS. */
export function endOfMain(of: ReadonlyMap<string, string>): Pick<ServiceEnd, "result" | "status"> {
  const [code, status = ""] = [of.get("ExecMainCode"), of.get("ExecMainStatus")];
  const result = of.get("Result") ?? "";
  // As in waitid(2): 0 there was no process, 1 it exited, 2 and 3 a signal ended it.
  if (code === "0") return { result, status: "" };
  return { result, status: code === "1" ? status : signalName(Number(status)) };
}

function signalName(number: number): string {
  const [name = `SIG${number}`] =
    Object.entries(constants.signals).find(([, value]) => value === number) ?? [];
  return name.slice("SIG".length);
}

/** Says what ended a process of the agent, or of the `program` that is named. `served`: whether it had served before. */
export function meaningOfEnd(
  { result, status }: Pick<ServiceEnd, "result" | "status">,
  served: boolean,
  program = "the agent",
): { readonly cause: EndCause; readonly how: string } {
  // Of a process of the agent there is one: another command of the unit failed, or was ended, before there was any.
  if (status === "" && ["exit-code", "signal", "core-dump"].includes(result))
    return { cause: "start", how: `a start failed before ${program} began` };
  switch (result) {
    case "watchdog":
      return {
        cause: "watchdog",
        how: "systemd's watchdog ended it, for systemd had heard nothing from it for a minute: a thread hung, the host stood still, or the unit was masked while it ran",
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
      return served
        ? { cause: "exit", how: `it failed with exit status ${status}` }
        : { cause: "start", how: `a start failed with exit status ${status}` };
    default:
      return { cause: "unknown", how: `systemd calls the result ${result}` };
  }
}
