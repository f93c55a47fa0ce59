// What `status` says of an agent that nobody can ask because it does not stay up: systemd starts it again a moment after each end, for ever.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { agentProgram, configOf, placeOfConfig, type UnitPlace } from "../base/instance.ts";
import { meaningOfEnd, parseServiceEnds, type ServiceEnd } from "../base/service-ends.ts";
import { AccelError, codeOf } from "../core/faults.ts";
import { ageOf, clockOf } from "./status-words.ts";

/** What systemd knows of the unit. */
export type UnitSeen = {
  /** As `systemctl show --timestamp=unix` writes it. */
  readonly shown: string;
  /** The unit's file of ends; empty where this user may not read it. */
  readonly ends: string;
};

const propertyNames = [
  "LoadState",
  "ActiveState",
  "Result",
  "ExecMainCode",
  "ExecMainStatus",
  "ExecMainExitTimestamp",
  "NRestarts",
  "ActiveEnterTimestamp",
  "ActiveExitTimestamp",
  "InactiveEnterTimestamp",
];

type Where = Parameters<typeof configOf>[0] & { readonly "state-dir"?: string | undefined };

/** Returns what to throw in the place of a fault by which no agent was reached, where its unit does not stay up; else the same fault. */
export async function faultOfUnit(
  error: unknown,
  where: Where,
  look: (place: UnitPlace) => Promise<UnitSeen | undefined> = lookAtUnit,
): Promise<unknown> {
  if (codeOf(error) !== "CONTROL_UNREACHABLE" || where["state-dir"] !== undefined) return error;
  const place = placeOfConfig(agentProgram, configOf(where));
  if (place === undefined) return error;
  const seen = await look(place);
  if (seen === undefined) return error;
  const name = place.unit.replace(/\.service$/, "");
  const text = failingText(seen, name, new Date());
  if (text === undefined) return error;
  const option = place.instance === undefined ? "" : ` --instance ${place.instance}`;
  return new AccelError("CONTROL_UNREACHABLE", text, {
    cause: error,
    hint: `\`journalctl -u ${name} -n 50\` says why, and \`accel-agent doctor${option}\` examines the host. systemd starts it again until it stays up.`,
  });
}

const showMs = 5_000;

async function lookAtUnit({ unit, stateDir }: UnitPlace): Promise<UnitSeen | undefined> {
  try {
    const asked = ["show", "--timestamp=unix", "-p", propertyNames.join(","), unit];
    const { stdout } = await promisify(execFile)("systemctl", asked, { timeout: showMs });
    return { shown: stdout, ends: textOf(join(stateDir, "last-end")) };
  } catch {
    return undefined; // There is no systemd here, or none that says it so.
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Says how often a unit has failed to start, when last and by what; undefined where it is up, or was not told to be. */
export function failingText(
  { shown, ends }: UnitSeen,
  name: string,
  now: Date,
): string | undefined {
  const of = new Map(shown.split("\n").map((line) => [nameIn(line), valueIn(line)] as const));
  const [active, result = ""] = [of.get("ActiveState"), of.get("Result")];
  const restarts = Number(of.get("NRestarts") ?? 0);
  // Of a start that is under way systemd says "success".
  const isBetween = result !== "success";
  const isFailing =
    (active === "activating" && (isBetween || restarts > 0)) ||
    (active === "deactivating" && isBetween);
  if (of.get("LoadState") !== "loaded" || !isFailing) return undefined;
  const last = isBetween ? endShown(of) : parseServiceEnds(ends).at(-1);
  const at = last?.at ?? timeIn(of.get("InactiveEnterTimestamp"));
  const how = last === undefined ? "" : `: ${meaningOfEnd(last, true).how}`;
  const when = at === undefined ? "" : `at ${momentText(at, now)}`;
  const underWay = isBetween ? "" : "; a start is under way";
  const servedUntil = timeIn(of.get("ActiveExitTimestamp"));
  if ((of.get("ActiveEnterTimestamp") ?? "") === "") {
    const failed = restarts + (isBetween ? 1 : 0);
    if (failed === 1) return `${name} has failed to start ${when}${how}${underWay}`;
    return `${name} has failed to start ${failed} times${when === "" ? "" : `, ${when} for the last time`}${how}${underWay}`;
  }
  const until =
    servedUntil === undefined ? "" : ` served until ${momentText(servedUntil, now)}, and`;
  const again =
    restarts === 0
      ? "systemd is about to start it again"
      : `systemd has started it again ${restarts === 1 ? "once" : `${restarts} times`}`;
  return `${name}${until} is not up: ${again}; it ended ${when} for the last time${how}${underWay}`;
}

const nameIn = (line: string): string => line.slice(0, Math.max(0, line.indexOf("=")));
const valueIn = (line: string): string => line.slice(line.indexOf("=") + 1);

/** The end of the main process, in the words of $SERVICE_RESULT and $EXIT_STATUS. */
function endShown(
  of: ReadonlyMap<string, string>,
): Partial<Pick<ServiceEnd, "at">> & Pick<ServiceEnd, "result" | "status"> {
  const at = timeIn(of.get("ExecMainExitTimestamp"));
  const [code, status = ""] = [of.get("ExecMainCode"), of.get("ExecMainStatus")];
  const result = of.get("Result") ?? "";
  const exit = { ...(at !== undefined && { at }), result };
  // As in waitid(2): 0 there was no process, 1 it exited, 2 and 3 a signal ended it.
  if (code === "0") return { ...exit, status: "" };
  return { ...exit, status: code === "1" ? status : signalName(Number(status)) };
}

function signalName(number: number): string {
  const [name = `SIG${number}`] =
    Object.entries(constants.signals).find(([, value]) => value === number) ?? [];
  return name.slice("SIG".length);
}

function timeIn(text: string | undefined): Date | undefined {
  const [, seconds] = /^@(\d{1,12})$/.exec(text ?? "") ?? [];
  return seconds === undefined ? undefined : new Date(Number(seconds) * 1_000);
}

function momentText(at: Date, now: Date): string {
  const text = at.toISOString();
  return `${clockOf(text)} (${ageOf(text, now)} ago)`;
}
