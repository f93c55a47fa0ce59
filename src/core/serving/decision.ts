// A decision against a visitor (a block, a request too many, or what monitor mode let through), kept to be looked up by its id.

import type { LimitVerdict } from "../limits/limit-verdict.ts";
import type { Verdict } from "./verdict.ts";

export type Decision = {
  readonly atMs: number;
  /** The host that was asked for, as it is served. */
  readonly host: string;
  /** The address as text; text that is no address is kept as none. */
  readonly clientIp: string;
  readonly userAgent: string | undefined;
  readonly verdict: Verdict | LimitVerdict;
  /** The domain whose policy on unknown bots is in force; undefined for the general one, or none. */
  readonly policyOf: string | undefined;
};

/**
 * The most characters of a user agent that a verdict looks at, and that are kept of it: what would be decided now is
 * asked of the same text. No published agent is longer than 330 characters, and no honest bot names itself further out.
 */
export const agentCharsMax = 512;

export const decisionIdPattern = /^[0-9a-f]{16}$/;
