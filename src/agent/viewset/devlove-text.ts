// Reads a devlove document from its bytes; the validator's reasons can be put into one bounded line.

import type { BackendRules } from "../../core/serving/backend-url.ts";
import { AccelError } from "../../core/faults.ts";
import type { Devlove } from "../../core/serving/devlove.ts";
import { takeDevlove, validateDevlove } from "../../wire/devlove-validate.ts";

/** A main domain with its sub-domains' names. */
export type SiteNames = { readonly name: string; readonly subDomains: readonly string[] };

export type DevloveRead =
  | { readonly ok: true; readonly devlove: Devlove }
  | { readonly ok: false; readonly reasons: readonly string[] };

/**
 * Validates a document. `names` is null if the names that it may use are not known, or were checked before.
 */
export function readDevlove(
  schemaId: string,
  bytes: Uint8Array,
  names: SiteNames | null,
  rules: BackendRules,
): DevloveRead {
  const content = textOf(bytes);
  if (content === undefined) return { ok: false, reasons: [notUtf8] };
  const verdict = validateDevlove(schemaId, content, {
    ...rules,
    mainDomain: names?.name ?? null,
    subDomains: names?.subDomains ?? [],
  });
  if (verdict.ok) return verdict;
  return {
    ok: false,
    reasons: verdict.errors.map(({ path, message, did_you_mean: meant }) => {
      const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
      return `${path === "" ? "" : `${path}: `}${message}${hint}`;
    }),
  };
}

export type DevloveTaken =
  /** `objections` are the reasons for which this release would refuse the document if it were new. */
  | { readonly ok: true; readonly devlove: Devlove; readonly objections?: readonly string[] }
  | { readonly ok: false; readonly reasons: readonly string[] };

/**
 * Reads the devlove of a version that was taken before: only its shape is checked, whatever the rules are now
 * and whichever names are linked.
 */
export function readTakenDevlove(
  schemaId: string,
  bytes: Uint8Array,
  rules: BackendRules,
): DevloveTaken {
  const read = readDevlove(schemaId, bytes, null, rules);
  if (read.ok) return read;
  const content = textOf(bytes);
  if (content === undefined) return read;
  const taken = takeDevlove(schemaId, content);
  return taken.ok ? { ...taken, objections: read.reasons } : { ok: false, reasons: [taken.reason] };
}

const notUtf8 = "the document is not UTF-8";

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const reasonsMax = 20;
/** The most characters of one reason, which may quote what was found. */
const reasonCharsMax = 300;

/** Joins reasons for a receipt, a log line or a warning: some 6,000 characters at most. */
export function boundedLine(reasons: readonly string[]): string {
  const told = reasons
    .slice(0, reasonsMax)
    .map((reason) =>
      reason.length > reasonCharsMax ? `${reason.slice(0, reasonCharsMax)}…` : reason,
    );
  const rest = reasons.length - told.length;
  return [...told, ...(rest > 0 ? [`and ${rest} more`] : [])].join("; ");
}

export function invalidDevlove(what: string, reasons: readonly string[]): AccelError {
  return new AccelError("VIEWSET_INVALID", `${what}: ${boundedLine(reasons)}`);
}
