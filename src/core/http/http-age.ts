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

/** RFC 9111 §1.2.2: so old that nothing is fresh. */
const ageMaxS = 2 ** 31;

/** §5.3: an invalid Expires is in the past, and so is one of several that differ. Undefined when absent. */
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

/** §4.2.3, corrected_initial_age. An Age that is no single number says that somebody on the way is confused: nothing of it is fresh. */
export function initialAge({ fields, requestedAtMs, receivedAtMs }: ResponseFacts): number {
  const said = fieldValues(fields, "age");
  const [age = "0"] = said;
  if (said.length > 1 || !/^\d+$/.test(age)) return ageMaxS;
  const apparentS = Math.floor((receivedAtMs - dateOf(fields, receivedAtMs)) / 1_000);
  const delayS = Math.floor(Math.max(0, receivedAtMs - requestedAtMs) / 1_000);
  return Math.min(ageMaxS, Math.max(0, apparentS, Number(age) + delayS));
}

export type Stored = {
  readonly storedAtMs: number;
  readonly initialAgeS: number;
  /** 0: to be revalidated at each use. */
  readonly freshForS: number;
};

/** Seconds; Infinity for what was stored in the future, which a clock that was set back makes possible. */
export function currentAgeS(stored: Stored, nowMs: number): number {
  const residentMs = nowMs - stored.storedAtMs;
  return residentMs < 0 ? Infinity : stored.initialAgeS + Math.floor(residentMs / 1_000);
}

export function isFresh(stored: Stored, nowMs: number): boolean {
  return currentAgeS(stored, nowMs) < stored.freshForS;
}

/**
 * The earliest moment at which this response can have been made, by our clock (ms): a source makes it after it was asked, and a cache on the way says its Age
 * (§5.1). `-Infinity` where the Age is not to be understood.
 */
export function madeAfter({
  fields,
  requestedAtMs,
}: Pick<ResponseFacts, "fields" | "requestedAtMs">): number {
  const said = fieldValues(fields, "age");
  const [age = "0"] = said;
  return said.length > 1 || !/^\d+$/.test(age) ? -Infinity : requestedAtMs - Number(age) * 1_000;
}

type Answered = Stored & { readonly headers: readonly Field[] };
/** `madeAfterMs`: see `madeAfter`; undefined where it is not known. */
type Fetched = Answered & { readonly madeAfterMs?: number | undefined };

/**
 * Whether the answer to a slow fetch comes after a newer one has been stored (§4: of several the most recent is used, by Date). `freshForS` of the stored one is
 * its lifetime by the rules in force now, `nowMs` the wall clock at the moment of storing.
 *
 * Dates order only answers whose fetches overlapped. What was made after the stored one had come in is newer whatever an origin's clock says: one that ran ahead
 * and was put right would otherwise keep every newer answer out until its old one's time is over. What is no longer fresh gives way to whatever comes: where an
 * origin's hosts disagree about the time, nothing would be stored for as long as that. So does what was stored in the future, before our own clock was set back.
 */
export function isOvertaken(answer: Fetched, stored: Answered, nowMs: number): boolean {
  const [date, storedDate] = [saidDate(answer.headers), saidDate(stored.headers)];
  if (date === undefined || storedDate === undefined || storedDate <= date) return false;
  if ((answer.madeAfterMs ?? -Infinity) >= stored.storedAtMs) return false;
  if (stored.storedAtMs > nowMs) return false;
  return isFresh(stored, Math.max(answer.storedAtMs, stored.storedAtMs));
}
