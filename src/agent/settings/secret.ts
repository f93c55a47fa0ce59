// Reads the secret16 of this deployment site from its file. It never comes from arguments or the environment,
// and never stands in a message.

import { existsSync, readFileSync } from "node:fs";
import { AccelError, messageOf } from "../../core/faults.ts";
import { parseSecret16, type Secret16 } from "../../core/ids.ts";

/** Where systemd shows the secret to the unit, and nobody else; and where the unit takes it from. */
export const unitSecret = {
  shown: "/run/credentials/accel-agent.service/secret16",
  source: "/etc/accel-agent/secret16",
} as const;

/**
 * Returns the file that holds the secret of the unit's next start, for whoever is not the unit. What systemd shows to
 * the unit is a copy from its last start, and is there only while it runs.
 */
export function secretFileOf(
  path: string,
  unit: { readonly shown: string; readonly source: string } = unitSecret,
): string {
  const hasSource = existsSync(unit.source) || !existsSync(unit.shown);
  return path === unit.shown && hasSource ? unit.source : path;
}

/** Reads the file. Throws SECRET_UNREADABLE saying what is wrong with it, without its content. */
export function readSecret16(path: string): Secret16 {
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch (error) {
    throw new AccelError(
      "SECRET_UNREADABLE",
      `the file of secret16 cannot be read: ${messageOf(error)}`,
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
