// Reads the secret16 of this deployment site from its file. It never comes from arguments or the environment,
// and never stands in a message.

import { readFileSync } from "node:fs";
import { AccelError, messageOf } from "../../core/faults.ts";
import { parseSecret16, type Secret16 } from "../../core/ids.ts";

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
