// What `status` says of an agent that nobody can ask because its unit is not up, and each command of a central that is not: it was stopped, it is starting, it does not stay up, and systemd starts it again a moment after each
// end, for ever; or systemd may not start it, or has no file of it. Of one that runs and answers `status` says so, too.

import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import {
  agentProgram,
  centralProgram,
  configOf,
  placeOf,
  placeOfConfig,
  unitNameOf,
  type UnitPlace,
} from "../base/instance.ts";
import { peekAnyway } from "../base/settings-file.ts";
import {
  endOfMain,
  meaningOfEnd,
  parseServiceEnds,
  type ServiceEnd,
} from "../base/service-ends.ts";
import { unreadWhileUp } from "../base/unread-unit.ts";
import { AccelError, codeOf, systemCode } from "../core/faults.ts";
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
  "InactiveExitTimestamp",
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
  const name = unitNameOf(place);
  const seen = await look(place);
  const down = seen && downUnit(seen, name, new Date());
  // An agent without a unit may run behind a socket that this user may not use.
  if (down === undefined || (down.state === "missing" && isHidden(error))) return error;
  const option = place.instance === undefined ? "" : ` --instance ${place.instance}`;
  return new AccelError("CONTROL_UNREACHABLE", down.message, {
    cause: error,
    hint: hints[down.state](name, `\`accel-agent doctor${option}\` examines the host`),
  });
}

/**
 * Returns what systemd says of the unit of an agent that answered, where it could not start that again: the agent knows nothing of it. Undefined where there is nothing
 * to tell.
 */
export async function troubleOfUnit(
  where: Where,
  look: (place: UnitPlace) => Promise<UnitSeen | undefined> = lookAtUnit,
): Promise<{ readonly text: string; readonly hint: string } | undefined> {
  if (where["state-dir"] !== undefined) return undefined;
  const place = placeOfConfig(agentProgram, configOf(where));
  const seen = place && (await look(place));
  return seen && unreadWhileUp(propertiesIn(seen.shown), unitNameOf(place));
}

/**
 * Returns what to throw in the place of a fault by which central was not reached behind the socket of its unit: that it does not run, and what systemd says of the unit;
 * each other fault as it is.
 */
export async function faultOfCentral(
  error: unknown,
  socket: string,
  {
    place = placeOf(centralProgram),
    look = lookAtUnit,
  }: {
    readonly place?: UnitPlace;
    readonly look?: (place: UnitPlace) => Promise<UnitSeen | undefined>;
  } = {},
): Promise<unknown> {
  if (codeOf(error) !== "CONTROL_UNREACHABLE") return error;
  const { value: stateDir = place.stateDir } = peekAnyway(place.config, "state_dir");
  if (resolve(socket) !== join(stateDir, "control.sock")) return error;
  const name = unitNameOf(place);
  const seen = await look(place);
  const down = seen && downUnit(seen, name, new Date(), "central");
  if (down === undefined || (down.state === "missing" && isHidden(error))) {
    const text = `central does not run: nothing listens on ${socket}`;
    return isUnheard(error) ? new AccelError("CONTROL_UNREACHABLE", text, { cause: error }) : error;
  }
  const message = isWhole.has(down.state) ? down.message : `central does not run: ${down.message}`;
  const isUnset = down.state === "stopped" && !existsSync(place.config);
  const hint = isUnset
    ? `There is no settings file ${place.config}, without which the unit starts nothing. As root: write it, then \`systemctl start ${name}\`.`
    : hints[down.state](name, "`accel-central check` judges the settings");
  return new AccelError("CONTROL_UNREACHABLE", message, { cause: error, hint });
}

/** The states whose message says by itself whether central runs. */
const isWhole: ReadonlySet<State> = new Set(["starting", "stopping", "masked"]);

const isUnheard = (error: unknown): boolean =>
  error instanceof Error && ["ENOENT", "ECONNREFUSED"].includes(systemCode(error.cause) ?? "");

const isHidden = (error: unknown): boolean =>
  error instanceof Error && ["EACCES", "EPERM"].includes(systemCode(error.cause) ?? "");

type State = "failing" | "ended" | "stopped" | "stopping" | "starting" | "masked" | "missing";

const journal = (name: string): string => `\`journalctl -u ${name} -n 50\``;
const hints: Readonly<Record<State, (name: string, examining: string) => string>> = {
  failing: (name, examining) =>
    `${journal(name)} says why, and ${examining}. systemd starts it again until it stays up.`,
  ended: (name, examining) =>
    `${journal(name)} says why, and ${examining}. systemd does not start it again. As root: \`systemctl start ${name}\` does.`,
  stopped: (name) => `As root: \`systemctl start ${name}\` starts it.`,
  stopping: (name) => `${journal(name)} says what it still does.`,
  starting: (name) => `Ask again in a moment. ${journal(name)} says what it does meanwhile.`,
  masked: (name) =>
    `Somebody forbade its start. As root: \`systemctl unmask ${name}\`, then \`systemctl start ${name}\`.`,
  missing: (name) => {
    const [program = name] = name.split("@");
    const one = program === agentProgram.name ? "an agent" : "a central";
    return `Install the package ${program} again, or, of ${one} that runs otherwise, name its state directory by --state-dir.`;
  },
};

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

/** Says in which state a unit is that is not up, and since when; undefined where it is up, or systemd cannot read its file. */
export function downUnit(
  { shown, ends }: UnitSeen,
  name: string,
  now: Date,
  program = "the agent",
): { readonly state: State; readonly message: string } | undefined {
  const of = propertiesIn(shown);
  const unstartable = unstartableUnit(of, name);
  if (unstartable !== undefined) return unstartable;
  if (!["loaded", "masked", "not-found"].includes(of.get("LoadState") ?? "")) return undefined;
  const since = (property: string): string => {
    const at = timeIn(of.get(property));
    return at === undefined ? "" : ` ${momentText(at, now)}`;
  };
  // Of a start that is under way, and of a stop by hand, systemd says "success".
  const isFault = of.get("Result") !== "success";
  switch (of.get("ActiveState")) {
    case "inactive":
    case "failed": {
      if (isFault) {
        const { when, how } = endText(of, ends, now, program);
        return { state: "ended", message: `${name} is not up: it ended${when}${how}` };
      }
      const at = since("InactiveEnterTimestamp");
      const message =
        at === ""
          ? `${name} was not started since this host booted`
          : `${name} is stopped, since${at}`;
      return { state: "stopped", message };
    }
    case "deactivating":
      if (!isFault)
        return {
          state: "stopping",
          message: `${name} is stopping, since${since("ActiveExitTimestamp")}`,
        };
      return { state: "failing", message: `${name} ${failingText(of, ends, now, program)}` };
    case "activating":
      if (!isFault && Number(of.get("NRestarts") ?? 0) === 0)
        return {
          state: "starting",
          message: `${name} is starting, since${since("InactiveExitTimestamp")}`,
        };
      return { state: "failing", message: `${name} ${failingText(of, ends, now, program)}` };
    default:
      return undefined;
  }
}

type Shown = ReadonlyMap<string, string>;

/** Says why systemd cannot start a unit that does not run: one that was masked, or whose file was taken away, while it ran is up until it ends. */
function unstartableUnit(
  of: Shown,
  name: string,
): { readonly state: State; readonly message: string } | undefined {
  if (!["inactive", "failed"].includes(of.get("ActiveState") ?? "")) return undefined;
  switch (of.get("LoadState")) {
    case "masked":
      return { state: "masked", message: `${name} is masked, and does not run` };
    case "not-found":
      return { state: "missing", message: `there is no unit ${name} on this host` };
    default:
      return undefined;
  }
}

/** Says how often a unit has failed to start, when last and by what. */
function failingText(of: Shown, ends: string, now: Date, program: string): string {
  const isBetween = of.get("Result") !== "success";
  const restarts = Number(of.get("NRestarts") ?? 0);
  const { at, when, how } = endText(of, ends, now, program);
  const underWay = isBetween ? "" : "; a start is under way";
  if ((of.get("ActiveEnterTimestamp") ?? "") === "") {
    const failed = restarts + (isBetween ? 1 : 0);
    if (failed === 1) return `has failed to start${when}${how}${underWay}`;
    return `has failed to start ${failed} times${when === "" ? "" : `,${when} for the last time`}${how}${underWay}`;
  }
  // The end of what served: of one death there is one time.
  if (restarts === 0) return `is not up: it ended${when}${how}; systemd is about to start it again`;
  const servedUntil = timeIn(of.get("ActiveExitTimestamp"));
  if (restarts === 1 && !isBetween)
    return `is not up: it ended${onlyEndText(servedUntil, { at, isOfStart: isStopNoted(of, ends) }, now)}${how}${underWay}`;
  const until =
    servedUntil === undefined ? "" : `served until ${momentText(servedUntil, now)}, and `;
  const again = `systemd has started it again ${restarts === 1 ? "once" : `${restarts} times`}`;
  return `${until}is not up: ${again}; it ended${when} for the last time${how}${underWay}`;
}

/** On a busy host the unit notes an end some seconds late, when it is cleaned up. */
const cleanedUpMs = 10_000;

type Noted = {
  /** When the unit had been cleaned up behind the end. */
  readonly at: Date | undefined;
  /** Whether what served is known to have been stopped before. */
  readonly isOfStart: boolean;
};

/**
 * Says when the one end was. One that served longer ago was stopped, and the end is that of a start. Shortly behind the time until which it served it may be either, a
 * crash that was noted late or a start behind a stop: then it is known between which times.
 */
function onlyEndText(servedUntil: Date | undefined, { at, isOfStart }: Noted, now: Date): string {
  if (at === undefined) return "";
  const until = momentText(at, now);
  if (servedUntil === undefined || isOfStart) return ` at ${until}`;
  const lateMs = at.getTime() - servedUntil.getTime();
  if (lateMs <= 0 || lateMs > cleanedUpMs) return ` at ${until}`;
  return ` between ${clockOf(servedUntil.toISOString())} and ${until}`;
}

/** Whether the unit noted that what served was stopped. */
const isStopNoted = (of: Shown, ends: string): boolean =>
  endsNoted(of, ends).some(({ result }) => result === "success");

/** Returns the ends that the unit noted since its agent served last: one that could not empty the file leaves lines of before. */
function endsNoted(of: Shown, ends: string): readonly ServiceEnd[] {
  const servedUntil = timeIn(of.get("ActiveExitTimestamp"));
  return parseServiceEnds(ends).filter(
    ({ at }) => servedUntil === undefined || at.getTime() >= servedUntil.getTime(),
  );
}

/** Says when and by what the main process ended last. */
function endText(
  of: Shown,
  ends: string,
  now: Date,
  program: string,
): { readonly at: Date | undefined; readonly when: string; readonly how: string } {
  const noted = endsNoted(of, ends).at(-1);
  // A stop is no fault: behind it came a start that failed before the unit could note anything.
  const failure = noted?.result === "success" ? undefined : noted;
  const last = of.get("Result") === "success" ? failure : endShown(of);
  const at = last?.at ?? timeIn(of.get("InactiveEnterTimestamp"));
  return {
    at,
    when: at === undefined ? "" : ` at ${momentText(at, now)}`,
    how: last === undefined ? "" : `: ${meaningOfEnd(last, true, program).how}`,
  };
}

const propertiesIn = (shown: string): Shown =>
  new Map(shown.split("\n").map((line) => [nameIn(line), valueIn(line)] as const));
const nameIn = (line: string): string => line.slice(0, Math.max(0, line.indexOf("=")));
const valueIn = (line: string): string => line.slice(line.indexOf("=") + 1);

/** The end of the main process, with its time. */
function endShown(
  of: Shown,
): Partial<Pick<ServiceEnd, "at">> & Pick<ServiceEnd, "result" | "status"> {
  const at = timeIn(of.get("ExecMainExitTimestamp"));
  return { ...(at !== undefined && { at }), ...endOfMain(of) };
}

function timeIn(text: string | undefined): Date | undefined {
  const [, seconds] = /^@(\d{1,12})$/.exec(text ?? "") ?? [];
  return seconds === undefined ? undefined : new Date(Number(seconds) * 1_000);
}

function momentText(at: Date, now: Date): string {
  const text = at.toISOString();
  return `${clockOf(text)} (${ageOf(text, now)} ago)`;
}
