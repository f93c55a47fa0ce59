// Preconditions and ranges of a request against a representation: RFC 9110 §13.2.2 in its order, §14 for one range.

import { parseHttpDate } from "./http-date.ts";
import { fieldValue, listMembers, type Field } from "./http-fields.ts";

export type Validators = {
  /** The tag with its quotes, and with `W/` if it is weak. */
  readonly etag: string | undefined;
  readonly modifiedMs: number | undefined;
};

export type Precondition = "proceed" | "not-modified" | "failed";

/** Judges the preconditions of a GET or HEAD of a representation that exists. */
export function precondition(request: readonly Field[], validators: Validators): Precondition {
  const ifMatch = fieldValue(request, "if-match");
  if (ifMatch !== undefined) {
    if (!matches(ifMatch, validators.etag, true)) return "failed";
  } else {
    const since = seconds(fieldValue(request, "if-unmodified-since"));
    const modified = wholeSeconds(validators.modifiedMs);
    if (since !== undefined && modified !== undefined && modified > since) return "failed";
  }
  const ifNoneMatch = fieldValue(request, "if-none-match");
  if (ifNoneMatch !== undefined)
    return matches(ifNoneMatch, validators.etag, false) ? "not-modified" : "proceed";
  const since = seconds(fieldValue(request, "if-modified-since"));
  const modified = wholeSeconds(validators.modifiedMs);
  return since !== undefined && modified !== undefined && modified <= since
    ? "not-modified"
    : "proceed";
}

/** Strong or weak comparison (RFC 9110 §8.8.3.2). */
function matches(condition: string, etag: string | undefined, strong: boolean): boolean {
  if (condition === "*") return true;
  if (etag === undefined || (strong && etag.startsWith("W/"))) return false;
  const opaque = etag.replace(/^W\//, "");
  return listMembers(condition).some((member) =>
    strong ? member === opaque : member.replace(/^W\//, "") === opaque,
  );
}

function seconds(date: string | undefined): number | undefined {
  return date === undefined ? undefined : wholeSeconds(parseHttpDate(date));
}

function wholeSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.floor(ms / 1_000);
}

export type ByteRange = { readonly first: number; readonly last: number };

/**
 * Returns the one range to send, or undefined to send the whole. Several ranges, and units other than bytes,
 * may be ignored and are. A date in If-Range counts only for a representation at least a second old, because
 * a younger one may change within the same second (RFC 9110 §13.1.5).
 */
export function selectRange(
  request: readonly Field[],
  validators: Validators,
  size: number,
  nowMs: number,
): ByteRange | "unsatisfiable" | undefined {
  const range = fieldValue(request, "range");
  if (range === undefined) return undefined;
  const ifRange = fieldValue(request, "if-range");
  if (ifRange !== undefined && !isSameForRange(ifRange, validators, nowMs)) return undefined;
  const match = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(range);
  if (match === null) return undefined;
  const [, from = "", to = ""] = match;
  if (from === "") {
    if (to === "") return undefined;
    const length = Math.min(Number(to), size);
    return length === 0 ? "unsatisfiable" : { first: size - length, last: size - 1 };
  }
  const first = Number(from);
  const last = to === "" ? size - 1 : Math.min(Number(to), size - 1);
  if (to !== "" && Number(to) < first) return undefined;
  return first >= size ? "unsatisfiable" : { first, last };
}

function isSameForRange(ifRange: string, validators: Validators, nowMs: number): boolean {
  if (/^(?:W\/)?"/.test(ifRange)) return ifRange === validators.etag && !ifRange.startsWith("W/");
  const since = seconds(ifRange);
  const modified = wholeSeconds(validators.modifiedMs);
  return since !== undefined && since === modified && nowMs - since * 1_000 >= 2_000;
}
