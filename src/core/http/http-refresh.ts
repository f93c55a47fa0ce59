// What the origin's later answers say of a stored response: RFC 9111 §3.2, §4.3.3, §4.3.4, §4.3.5.
//
// A stored response is dropped only for what a response says. What a request says of itself (no-store,
// Authorization) decides whether anything is written, and a cookie makes an answer its visitor's own; neither
// takes from others what is stored for them.

import type { ResponseFacts } from "./http-age.ts";
import { cacheDirectives } from "./cache-control.ts";
import {
  plainRequest,
  planStore,
  setsForVisitor,
  type StoreRequest,
  type StoreSettings,
} from "./http-cache.ts";
import { formatHttpDate } from "./http-date.ts";
import { fieldValue, withoutFields, type Field } from "./http-fields.ts";
import { variesByCookie, varyNamesOf } from "./http-vary.ts";

export type RefreshPlan =
  | {
      readonly kind: "refresh";
      readonly headers: readonly Field[];
      readonly initialAgeS: number;
      readonly freshForS: number;
      /** False if the refresh is for this request alone and nothing of it is written. */
      readonly isKept: boolean;
    }
  /** The stored response still holds, and this answer is its visitor's alone. */
  | { readonly kind: "own" }
  /** The stored response still holds, but may no longer be kept. */
  | { readonly kind: "drop" }
  /** The answer is about another representation than the one stored. */
  | { readonly kind: "other" };

type StoredResponse = { readonly status: number; readonly headers: readonly Field[] };

/** Returns the field by which a stored response has its media type once the answer has refreshed it: an answer need not repeat it. */
export function typeAfter(
  stored: Pick<StoredResponse, "headers">,
  answer: Pick<ResponseFacts, "fields">,
): readonly Field[] {
  const isType = ([name]: Field): boolean => name.toLowerCase() === "content-type";
  const said = answer.fields.filter(isType);
  return said.length > 0 ? said : stored.headers.filter(isType);
}

/** The fields that describe the stored bytes. */
const kept: ReadonlySet<string> = new Set([
  "age",
  "content-encoding",
  "content-length",
  "content-md5",
  "content-range",
  "etag",
]);
const cookie: ReadonlySet<string> = new Set(["set-cookie"]);

/** Plans what a confirming answer changes in a stored response. `answer` comes without hop-by-hop fields. */
export function planRefresh(
  stored: StoredResponse,
  answer: ResponseFacts,
  request: StoreRequest,
  settings: StoreSettings,
): RefreshPlan {
  // The tag decides if it is stated, the date if it is the only validator (RFC 9111 §4.3.4).
  const validator = fieldValue(answer.fields, "etag") === undefined ? "last-modified" : "etag";
  if (!isSame(stored.headers, answer.fields, validator) || !isSameVary(stored, answer))
    return { kind: "other" };
  const said = withoutFields(answer.fields, kept);
  const news = [...withoutFields(said, cookie)];
  const replaced = new Set(news.map(([name]) => name.toLowerCase()));
  // An answer without Date was made now.
  if (!replaced.has("date")) news.push(["Date", formatHttpDate(answer.receivedAtMs)]);
  replaced.add("date");
  const headers = [...withoutFields(stored.headers, replaced), ...news];
  // The Age of the answer is not stored, but counts here.
  const passing = answer.fields.filter(([name]) => name.toLowerCase() === "age");
  const response = { ...answer, status: stored.status, fields: [...headers, ...passing] };
  const plan = planStore(plainRequest, response, settings);
  if (!plan.store || forbidsSharing(answer.fields))
    return { kind: isOfVisitor(stored, request) ? "own" : "drop" };
  if (setsForVisitor(answer.fields, settings)) return { kind: "own" };
  const { initialAgeS, freshForS } = plan;
  const isKept = planStore(request, response, settings).store;
  return { kind: "refresh", headers, initialAgeS, freshForS, isKept };
}

/**
 * Returns whether an answer says of itself that it is not for others. A field for shared caches (RFC 9213) that
 * only the stored response has lets that one be kept, and none of the fields of such an answer.
 */
function forbidsSharing(fields: readonly Field[]): boolean {
  const { directives } = cacheDirectives(fields);
  return (
    directives.has("private") || (directives.has("no-store") && !directives.has("must-understand"))
  );
}

/**
 * Returns whether an answer speaks of one visitor. An origin's answer to a visitor's cookies says nothing of
 * a response stored for all, unless that is stored for those cookies.
 */
function isOfVisitor({ headers }: StoredResponse, { hasCookies }: StoreRequest): boolean {
  return hasCookies && !variesByCookie(headers);
}

/** Client errors that are about what the URL names. The others are about the request: how it was made, by whom, how often. */
const ofResource: ReadonlySet<number> = new Set([401, 402, 403, 404, 405, 410, 451]);

/**
 * Returns whether a full answer, in place of a confirmation, ends the stored response (§4.3.3): it is the
 * newer word about the URL, and may be stored for nobody. An answer to credentials or cookies does not end
 * it, because it says nothing about what is stored for all.
 */
export function endsStored(
  stored: StoredResponse,
  answer: ResponseFacts,
  request: StoreRequest,
  settings: StoreSettings,
): boolean {
  const { status } = answer;
  const isFull = status >= 200 && status < 400 && status !== 206 && status !== 304;
  if (request.isAuthorized || isOfVisitor(stored, request)) return false;
  if (!isFull && !ofResource.has(status)) return false;
  const fields = withoutFields(answer.fields, cookie);
  return !planStore(plainRequest, { ...answer, fields }, settings).store;
}

/**
 * Plans what a 200 to HEAD changes, or returns undefined if it does not say whether the stored body still
 * holds. RFC 9111 §4.3.5 would refresh a response that nothing contradicts; here something has to confirm it,
 * because a page made anew each time has neither validator nor length.
 */
export function planHeadRefresh(
  stored: StoredResponse & { readonly size: number },
  answer: ResponseFacts,
  request: StoreRequest,
  settings: StoreSettings,
): RefreshPlan | undefined {
  const { headers } = stored;
  const length = fieldValue(answer.fields, "content-length");
  const isSameLength = length === undefined || Number(length) === stored.size;
  const isOne = (name: string): boolean => isSame(headers, answer.fields, name);
  if (!isSameLength || !isOne("etag") || !isOne("last-modified"))
    return isOfVisitor(stored, request) ? { kind: "own" } : { kind: "other" };
  const isValidated = ["etag", "last-modified"].some(
    (name) => fieldValue(answer.fields, name) !== undefined,
  );
  return isValidated ? planRefresh(stored, answer, request, settings) : undefined;
}

/**
 * Returns whether a validator of the answer matches the stored one. A validator that is missing contradicts
 * nothing; weak and strong forms of one tag are one (RFC 9110 §8.8.3.2).
 */
function isSame(stored: readonly Field[], answer: readonly Field[], name: string): boolean {
  const said = fieldValue(answer, name);
  const opaque = (value: string | undefined): string | undefined => value?.replace(/^W\//, "");
  return said === undefined || opaque(said) === opaque(fieldValue(stored, name));
}

/**
 * Returns whether the answer varies by the same fields. A response that begins to vary by something else was
 * stored for the wrong requests.
 */
function isSameVary({ headers }: StoredResponse, { fields }: ResponseFacts): boolean {
  return (
    fieldValue(fields, "vary") === undefined ||
    // The stored coding counts too, which a 304 need not name.
    varyNamesOf([...fields, ...codingOf(headers)])?.join() === varyNamesOf(headers)?.join()
  );
}

function codingOf(headers: readonly Field[]): readonly Field[] {
  return headers.filter(([name]) => name.toLowerCase() === "content-encoding");
}
