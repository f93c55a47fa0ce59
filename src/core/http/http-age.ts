// Ages and lifetimes of stored responses: RFC 9111 §4.2. What is doubtful is old.

import { parseHttpDate } from "./http-date.ts";
import { fieldValue, fieldValues, type Field } from "./http-fields.ts";

/** A response: its head, and when it was asked for and came in (wall clock, ms). */
export type ResponseFacts = {
  readonly status: number;
  readonly fields: readonly Field[];
  readonly requestedAtMs: number;
  readonly receivedAtMs: number;
};

/** RFC 9111 §1.2.2: an age at which nothing is fresh. */
const ageMaxS = 2 ** 31;

/**
 * Returns the lifetime that Expires gives, in seconds, or undefined if there is none. An invalid Expires is
 * in the past, and so are several that differ (§5.3).
 */
export function expiresIn({
  fields,
  receivedAtMs,
}: Pick<ResponseFacts, "fields" | "receivedAtMs">): number | undefined {
  const said = fieldValues(fields, "expires");
  if (said.length === 0) return undefined;
  const expires = new Set(said).size === 1 ? parseHttpDate(said[0] ?? "") : undefined;
  if (expires === undefined) return 0;
  return Math.max(0, Math.floor((expires - dateOf(fields, receivedAtMs)) / 1_000));
}

function dateOf(fields: readonly Field[], receivedAtMs: number): number {
  return saidDate(fields) ?? receivedAtMs;
}

function saidDate(fields: readonly Field[]): number | undefined {
  return parseHttpDate(fieldValue(fields, "date") ?? "");
}

/** Numbers with bare commas between them. Whoever puts several lines together writes a space behind the comma (RFC 9110 §5.3). */
const ageForm = /^(\d+)(?:,\d+)*$/;

/**
 * Returns the Age that a response states, 0 where it states none. Of a list the first member counts (RFC 9111 §5.1).
 * Several lines, also where they were put together on the way, were said by several caches, and nobody knows
 * which: that is undefined, as is what is no number.
 */
function saidAge(fields: readonly Field[]): number | undefined {
  const said = fieldValues(fields, "age");
  if (said.length === 0) return 0;
  const first = said.length === 1 ? ageForm.exec(said[0] ?? "")?.[1] : undefined;
  return first === undefined ? undefined : Number(first);
}

/** Returns the corrected_initial_age of §4.2.3. A response whose Age cannot be understood is never fresh. */
export function initialAge({ fields, requestedAtMs, receivedAtMs }: ResponseFacts): number {
  const age = saidAge(fields);
  if (age === undefined) return ageMaxS;
  const apparentS = Math.floor((receivedAtMs - dateOf(fields, receivedAtMs)) / 1_000);
  const delayS = Math.floor(Math.max(0, receivedAtMs - requestedAtMs) / 1_000);
  return Math.min(ageMaxS, Math.max(0, apparentS, age + delayS));
}

export type Stored = {
  readonly storedAtMs: number;
  readonly initialAgeS: number;
  /** 0 if the response has to be revalidated at each use. */
  readonly freshForS: number;
};

/**
 * Returns seconds, or Infinity for a response stored in the future, which is possible after the clock was set
 * back.
 */
export function currentAgeS(stored: Stored, nowMs: number): number {
  const residentMs = nowMs - stored.storedAtMs;
  return residentMs < 0 ? Infinity : stored.initialAgeS + Math.floor(residentMs / 1_000);
}

/**
 * Returns the response as it is once a clear has made it stale at that moment (ms of the wall clock, -Infinity
 * if it is not known): its lifetime has ended then, and it is not fresh now whatever the clocks say.
 */
export function staleSince<S extends Stored>(stored: S, sinceMs: number, nowMs: number): S {
  const endedS = currentAgeS(stored, Math.max(stored.storedAtMs, Math.min(sinceMs, nowMs)));
  const freshForS =
    sinceMs === -Infinity
      ? -Infinity
      : Math.min(stored.freshForS, endedS, currentAgeS(stored, nowMs));
  return { ...stored, freshForS };
}

export function isFresh(stored: Stored, nowMs: number): boolean {
  return currentAgeS(stored, nowMs) < stored.freshForS;
}

/**
 * Returns the earliest moment at which this response can have been made, by our clock (ms): an origin makes
 * it after it was asked, and a cache on the way states its Age (§5.1). Returns `-Infinity` if the Age cannot
 * be understood.
 */
export function madeAfter({
  fields,
  requestedAtMs,
}: Pick<ResponseFacts, "fields" | "requestedAtMs">): number {
  const age = saidAge(fields);
  return age === undefined ? -Infinity : requestedAtMs - age * 1_000;
}

type Answered = Stored & { readonly headers: readonly Field[] };
/** `madeAfterMs` is what `madeAfter` returns, or undefined if it is not known. */
type Fetched = Answered & { readonly madeAfterMs?: number | undefined };

/**
 * Returns whether a newer response was stored while this answer was being fetched (§4: the most recent of
 * several is used, by Date). `freshForS` of the stored one is its lifetime under the rules in force now;
 * `nowMs` is the wall clock at the moment of storing.
 *
 * Dates order only answers whose fetches overlapped. An answer made after the stored one came in is newer
 * whatever the origin's clock says; otherwise an origin whose clock ran ahead and was put right would have
 * every newer answer refused until the old one's lifetime ends. A stored response that is no longer fresh
 * gives way to any answer; otherwise nothing would be stored for as long as an origin's hosts disagree about
 * the time. So does one that was stored in the future, before our own clock was set back.
 */
export function isOvertaken(answer: Fetched, stored: Answered, nowMs: number): boolean {
  const [date, storedDate] = [saidDate(answer.headers), saidDate(stored.headers)];
  if (date === undefined || storedDate === undefined || storedDate <= date) return false;
  if ((answer.madeAfterMs ?? -Infinity) >= stored.storedAtMs) return false;
  if (stored.storedAtMs > nowMs) return false;
  return isFresh(stored, Math.max(answer.storedAtMs, stored.storedAtMs));
}
