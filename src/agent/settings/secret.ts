// Reads the secret16 of this deployment site from its file. It never comes from arguments or the environment,
// and never stands in a message.

import { existsSync, readFileSync } from "node:fs";
import { agentProgram, placeOf } from "../../base/instance.ts";
import { placeOfSecret } from "../../base/lost-secret.ts";
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
  unit: { readonly shown: string; readonly source: string } = placeOfSecret(path).secret,
): string {
  const hasSource = existsSync(unit.source) || !existsSync(unit.shown);
  return path === unit.shown && hasSource ? unit.source : path;
}

/** Says that other users than its owner can read the file of a secret, and what closes it; undefined where they cannot. */
export function exposedSecret(
  path: string,
  modeBits: number,
): { readonly message: string; readonly hint: string } | undefined {
  const mode = modeBits & 0o777;
  if ((mode & 0o077) === 0) return undefined;
  return {
    message: `${path} can be read by other users (mode ${mode.toString(8).padStart(3, "0")})`,
    hint: `chmod 600 ${path}; ${rotateHint}`,
  };
}

export const rotateHint =
  "if somebody may have read it, rotate the secret (docs/operations/central.md, a secret in wrong hands)";

const deniedHint =
  "This user may not read it. An operator gives the command as root; the agent gets the secret from its unit (LoadCredential=), or runs as the user that owns the file.";

/** Of what systemd shows nothing is there while the unit does not run. */
const shownHint =
  "systemd shows it to the unit alone, while it runs: start the unit, or name another file by `secret16_file`.";

/** Reads the file. Throws SECRET_UNREADABLE saying what is wrong with it, without its content. */
export function readSecret16(path: string): Secret16 {
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch (error) {
    const isDenied = systemCode(error) === "EACCES";
    const isShown = path === placeOfSecret(path).secret.shown;
    const hint = isDenied ? deniedHint : isShown ? shownHint : undefined;
    throw new AccelError(
      "SECRET_UNREADABLE",
      `the file of secret16 cannot be read: ${messageOf(error)}`,
      { cause: error, ...(hint !== undefined && { hint }) },
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
