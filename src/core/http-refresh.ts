// What a 304, or an answer to HEAD, changes of a stored response: RFC 9111 §3.2, §4.3.4, §4.3.5.

import type { ResponseFacts } from "./http-age.ts";
import { planStore, type StoreRequest, type StoreSettings } from "./http-cache.ts";
import { formatHttpDate } from "./http-date.ts";
import { fieldValue, withoutFields, type Field } from "./http-fields.ts";
import { varyNamesOf } from "./http-vary.ts";

export type RefreshPlan =
  | {
      readonly kind: "refresh";
      readonly headers: readonly Field[];
      readonly initialAgeS: number;
      readonly freshForS: number;
    }
  /** It is still the one, but may not be kept any more. */
  | { readonly kind: "drop" }
  /** It speaks of another representation than the one stored. */
  | { readonly kind: "other" };

type StoredResponse = { readonly status: number; readonly headers: readonly Field[] };

/** What describes the stored bytes. */
const kept: ReadonlySet<string> = new Set([
  "age",
  "content-encoding",
  "content-length",
  "content-md5",
  "content-range",
  "etag",
]);
const cookie: ReadonlySet<string> = new Set(["set-cookie"]);

/** `answer` is without hop-by-hop fields. */
export function planRefresh(
  stored: StoredResponse,
  answer: ResponseFacts,
  request: StoreRequest,
  settings: StoreSettings,
): RefreshPlan {
  if (!isSame(stored.headers, answer.fields, "etag") || !isSameVary(stored, answer))
    return { kind: "other" };
  const said = withoutFields(answer.fields, kept);
  const news = [...withoutFields(said, cookie)];
  const replaced = new Set(news.map(([name]) => name.toLowerCase()));
  // One that does not say when it was made was made now.
  if (!replaced.has("date")) news.push(["Date", formatHttpDate(answer.receivedAtMs)]);
  replaced.add("date");
  const headers = [...withoutFields(stored.headers, replaced), ...news];
  // What is not stored decides too: an Age, a cookie that makes it one visitor's.
  const passing = answer.fields.filter(([name]) => /^(?:age|set-cookie)$/i.test(name));
  const plan = planStore(
    request,
    { ...answer, status: stored.status, fields: [...headers, ...passing] },
    settings,
  );
  return plan.store
    ? { kind: "refresh", headers, initialAgeS: plan.initialAgeS, freshForS: plan.freshForS }
    : { kind: "drop" };
}

/**
 * A 200 to HEAD. Undefined: it does not say whether the stored body is still the one. RFC 9111 §4.3.5 would have one refreshed that nothing
 * contradicts; here something has to speak for it, for a page made anew each time has neither validator nor length.
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
  if (!isSameLength || !isOne("etag") || !isOne("last-modified")) return { kind: "other" };
  const isValidated = ["etag", "last-modified"].some(
    (name) => fieldValue(answer.fields, name) !== undefined,
  );
  return isValidated ? planRefresh(stored, answer, request, settings) : undefined;
}

/** What is said is what is stored; a validator that is not said contradicts nothing. Weak and strong forms of one tag are one (RFC 9110 §8.8.3.2). */
function isSame(stored: readonly Field[], answer: readonly Field[], name: string): boolean {
  const said = fieldValue(answer, name);
  const opaque = (value: string | undefined): string | undefined => value?.replace(/^W\//, "");
  return said === undefined || opaque(said) === opaque(fieldValue(stored, name));
}

/** A response that begins to vary by something else was stored for the wrong requests. */
function isSameVary({ headers }: StoredResponse, { fields }: ResponseFacts): boolean {
  return (
    fieldValue(fields, "vary") === undefined ||
    // With the stored coding, which a 304 need not name.
    varyNamesOf([...fields, ...codingOf(headers)])?.join() === varyNamesOf(headers)?.join()
  );
}

function codingOf(headers: readonly Field[]): readonly Field[] {
  return headers.filter(([name]) => name.toLowerCase() === "content-encoding");
}
