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
