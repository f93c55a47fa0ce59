// What the commands that change something at central have in common: who runs them, and numbers.

import { userInfo } from "node:os";
import { AccelError } from "../core/faults.ts";

/**
 * Returns the account, with the account behind sudo. Central believes it: whoever reaches its socket is that
 * account or root.
 */
export function operatorName(env: NodeJS.ProcessEnv): string {
  const { username } = userInfo();
  const before = env["SUDO_USER"];
  return before === undefined || before === username ? username : `${username} (${before})`;
}

export function idGiven(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,14}$/.test(text))
    throw new AccelError("USAGE", `${option} takes a number, not ${text}`);
  return Number(text);
}
