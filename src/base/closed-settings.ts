// A settings file of the agent's unit that root may read and the agent may not: what root is told of it would be true for root alone.

import { statSync, type Stats } from "node:fs";
import { placeOfConfig, agentProgram } from "./instance.ts";

export type ClosedSettings = { readonly message: string; readonly hint: string };

/** Says where the unit's own user may not read its settings file; undefined where he may, where the file is no unit's, and where it is not there. */
export function closedSettings(
  path: string,
  stateDir = placeOfConfig(agentProgram, path)?.stateDir,
): ClosedSettings | undefined {
  if (stateDir === undefined) return undefined;
  const file = statOf(path);
  if (file === undefined || mayRead(file, statOf(stateDir))) return undefined;
  const mode = (file.mode & 0o777).toString(8).padStart(3, "0");
  return {
    message: `the settings file ${path} cannot be read by the agent, which has a user of its own: its mode is ${mode}. A reload fails, and so does the next start`,
    hint: `As root: chmod 644 ${path}. The secret is in another file.`,
  };
}

/** `state`: the directory that is the agent's own; undefined: it has not run yet, and will have a user that owns nothing. */
function mayRead({ uid, gid, mode }: Stats, state: Stats | undefined): boolean {
  if (state?.uid === 0) return true;
  if (uid === state?.uid) return (mode & 0o400) !== 0;
  return (mode & (gid === state?.gid ? 0o040 : 0o004)) !== 0;
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
