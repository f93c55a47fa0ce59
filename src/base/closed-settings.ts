// A file of the agent's unit that root may read and the agent may not, for its own mode or that of a directory above it: what root is told of it would be true for root alone.

import { realpathSync, statSync, type Stats } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { systemCode } from "../core/faults.ts";
import { placeOfConfig, agentProgram } from "./instance.ts";

/** What is told of a file that its unit may not read. */
export type ClosedFile = { readonly message: string; readonly hint: string };

/** Says where the unit's own user may not read its settings file; undefined where he may, where the file is no unit's, and where it is not there. */
export function closedSettings(
  path: string,
  stateDir = placeOfConfig(agentProgram, path)?.stateDir,
): ClosedFile | undefined {
  const closed = closedFile(path, stateDir);
  return (
    closed && {
      message: `the settings file ${path} ${closed.message}. A reload fails, and so does the next start`,
      hint: `${closed.hint}. There is nothing secret in the settings file.`,
    }
  );
}

/** Says where the user of a unit may not read the authority of central that the unit's settings file `config` names; undefined where closedSettings says nothing either. */
export function closedAuthority(
  path: string | undefined,
  config: string,
  stateDir = placeOfConfig(agentProgram, config)?.stateDir,
): ClosedFile | undefined {
  const closed = path === undefined ? undefined : closedFile(path, stateDir);
  return (
    closed && {
      message: `central_ca_file ${path} ${closed.message}. The next start fails`,
      hint: `${closed.hint}.`,
    }
  );
}

/** Says which of the directories of a settings file that is to be written the unit's own user may not enter, as `mkdir` makes them with the umask 077. */
export function closedDirectories(
  path: string,
  stateDir = placeOfConfig(agentProgram, path)?.stateDir,
): ClosedFile | undefined {
  if (stateDir === undefined) return undefined;
  const closed = directoriesClosedTo(path, statsOf(stateDir));
  return closed.length === 0
    ? undefined
    : { message: notEntered(closed), hint: `As root: ${opening(closed)}` };
}

/**
 * Says which directory keeps this process from a file that the agent has to read, and what opens it; undefined where none does. One that lies below is not seen, and is
 * told of once this one is open.
 */
export function closedWay(path: string): string | undefined {
  const user = { uid: process.geteuid?.(), gid: process.getegid?.() };
  for (const at of parentsOf(resolve(path))) {
    const stats = statsOf(at);
    if (stats === undefined) return undefined;
    if (!mayPass(stats, user))
      return `The agent, which has a user of its own, has to enter ${at}, whose mode is ${modeText(stats)}. As root: ${opening([{ at, stats }])}`;
  }
  return undefined;
}

/** `stateDir`: the directory that is the agent's own; undefined: the file is no unit's. */
function closedFile(path: string, stateDir: string | undefined): ClosedFile | undefined {
  const file = statsOf(path);
  if (stateDir === undefined || file === undefined) return undefined;
  const user = statsOf(stateDir);
  const directories = directoriesClosedTo(path, user);
  const isClosed = !mayRead(file, user);
  if (directories.length === 0 && !isClosed) return undefined;
  const reasons = [
    ...(directories.length === 0 ? [] : [notEntered(directories)]),
    ...(isClosed ? [`its mode is ${modeText(file)}`] : []),
  ];
  const lines = [
    ...(directories.length === 0 ? [] : [opening(directories)]),
    ...(isClosed ? [`chmod 644 ${path}`] : []),
  ];
  return {
    message: `cannot be read by the agent, which has a user of its own: ${reasons.join(", and ")}`,
    hint: `As root: ${lines.join("; ")}`,
  };
}

type Directory = { readonly at: string; readonly stats: Stats };

function directoriesClosedTo(path: string, user: Owner | undefined): readonly Directory[] {
  const real = realPathOf(path);
  const parents = [...parentsOf(resolve(path)), ...(real === undefined ? [] : parentsOf(real))];
  return [...new Set(parents)].flatMap((at) => {
    const stats = statsOf(at);
    return stats === undefined || mayPass(stats, user) ? [] : [{ at, stats }];
  });
}

/** Returns the directories that lead to a path, from the root on. */
function parentsOf(path: string): readonly string[] {
  const above = dirname(path);
  return above === path ? [] : [...parentsOf(above), above];
}

const notEntered = (directories: readonly Directory[]): string =>
  directories
    .map(({ at, stats }) => `it may not enter ${at}, whose mode is ${modeText(stats)}`)
    .join(", and ");

/** A secret that only its directory kept from others is closed before that is opened. */
const opening = (directories: readonly Directory[]): string => {
  const secrets = directories
    .flatMap(({ at }) => placeOfConfig(agentProgram, join(at, "agent.yaml"))?.secret.source ?? [])
    .filter(mayBeExposed);
  const closing = secrets.length === 0 ? "" : `chmod 600 ${secrets.join(" ")}; `;
  return `${closing}chmod 755 ${directories.map(({ at }) => at).join(" ")}`;
};

/** Who may not look into the directory does not see it. */
function mayBeExposed(path: string): boolean {
  try {
    return (statSync(path).mode & 0o077) !== 0;
  } catch (error) {
    return systemCode(error) === "EACCES";
  }
}

const modeText = ({ mode }: Stats): string => (mode & 0o777).toString(8).padStart(3, "0");

/** Undefined: it has not run yet, and will have a user that owns nothing. */
type Owner = { readonly uid: number | undefined; readonly gid: number | undefined };

const mayRead = (file: Stats, user: Owner | undefined): boolean => isAllowed(file, user, 0o4);
const mayPass = (directory: Stats, user: Owner | undefined): boolean =>
  isAllowed(directory, user, 0o1);

/** `bit`: what others are allowed by it. */
function isAllowed({ uid, gid, mode }: Stats, user: Owner | undefined, bit: number): boolean {
  if (user?.uid === 0) return true;
  if (uid === user?.uid) return (mode & (bit << 6)) !== 0;
  return (mode & (gid === user?.gid ? bit << 3 : bit)) !== 0;
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
