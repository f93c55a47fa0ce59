// Reads the secret16 of this deployment site from its file. It never comes from arguments or the environment,
// and never stands in a message.

import { existsSync, readFileSync } from "node:fs";
import { agentProgram, placeOf, type UnitPlace } from "../../base/instance.ts";
import { AccelError, messageOf, systemCode } from "../../core/faults.ts";
import { parseSecret16, type Secret16 } from "../../core/ids.ts";

/** Of the plain unit. */
export const unitSecret = placeOf(agentProgram).secret;

/**
 * Returns the file that holds the secret of the unit's next start, for whoever is not the unit. What systemd shows to
 * the unit is a copy from its last start, and is there only while it runs.
 */
export function secretFileOf(
  path: string,
  unit: { readonly shown: string; readonly source: string } = secretOfUnit(path),
): string {
  const hasSource = existsSync(unit.source) || !existsSync(unit.shown);
  return path === unit.shown && hasSource ? unit.source : path;
}

/** Returns the file that is gone from which the unit takes the secret at its next start, while it runs with the copy of its last one; undefined where all is there. */
export function goneSecretFile(
  path: string,
  { shown, source }: UnitPlace["secret"] = secretOfUnit(path),
): string | undefined {
  return path === shown && existsSync(shown) && !existsSync(source) ? source : undefined;
}

/** Says what to do about a file of the secret that is gone beside an agent that runs. */
export const goneSecretHint = (path: string, gone: string): string =>
  `As root, while the agent runs: install -m 600 ${path} ${gone}. Without it the unit skips its next start.`;

/** Returns what the unit has whose secret is shown at a path; the plain unit's where none is. */
function secretOfUnit(path: string): { readonly shown: string; readonly source: string } {
  const [, instance] = /^\/run\/credentials\/accel-agent@([^/]+)\.service\//.exec(path) ?? [];
  return placeOf(agentProgram, instance).secret;
}

const deniedHint =
  "This user may not read it. An operator gives the command as root; the agent gets the secret from its unit (LoadCredential=), or runs as the user that owns the file.";

/** Reads the file. Throws SECRET_UNREADABLE saying what is wrong with it, without its content. */
export function readSecret16(path: string): Secret16 {
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch (error) {
    const isDenied = systemCode(error) === "EACCES";
    throw new AccelError(
      "SECRET_UNREADABLE",
      `the file of secret16 cannot be read: ${messageOf(error)}`,
      { cause: error, ...(isDenied && { hint: deniedHint }) },
    );
  }
  const secret = parseSecret16(content.trim());
  if (secret !== undefined) return secret;
  const length = content.trim().length;
  const wrong = length === 32 ? "other characters than 0-9 and a-f" : `${length} characters`;
  throw new AccelError(
    "SECRET_UNREADABLE",
    `${path} must hold 32 lower-case hex characters, it holds ${wrong}`,
  );
}
