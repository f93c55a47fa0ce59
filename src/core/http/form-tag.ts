// The forms of one response, each a representation of its own with a validator of its own (RFC 9110 §8.8.3.3): the form `br` of `"x"` is `"x-br"`,
// its form `avif-640` is `"x-avif-640"`. Whoever revalidates may name any of them.

import { isCoding } from "./content-coding.ts";
import { fieldValue, listMembers, withoutFields, type Field } from "./http-fields.ts";

/**
 * Returns the tag of a form; null is the response as its source sent it. A weak tag says that the meaning is equal. It stays under a coding, which gives the same bytes
 * back. Under the form of a picture it gets a name of its own, and stays weak: who has the AVIF and reads none any more must not be told that it is the JPEG.
 */
export function formTag(etag: string, form: string | null): string {
  if (form === null || !etag.endsWith('"')) return etag;
  return isWeak(etag) && isCoding(form) ? etag : `${etag.slice(0, -1)}-${form}"`;
}

const isWeak = (etag: string): boolean => etag.startsWith("W/");

/** Returns what weak comparison compares (RFC 9110 §8.8.3.2). */
const opaqueTag = (etag: string): string => (isWeak(etag) ? etag.slice(2) : etag);

/**
 * Fields that speak of the bytes of the source, and of ranges, which are served of these alone. RFC 9530
 * digests are of the content as it is sent.
 */
const ofOtherBytes: ReadonlySet<string> = new Set([
  "accept-ranges",
  "content-digest",
  "content-md5",
  "digest",
  "repr-digest",
]);

/** Returns what the head of a form has of that of its source: its own tag, and nothing of other bytes. */
export function taggedFields(fields: readonly Field[], form: string): readonly Field[] {
  return withoutFields(fields, ofOtherBytes).map(([name, value]): Field =>
    name.toLowerCase() === "etag" ? [name, formTag(value, form)] : [name, value],
  );
}

/**
 * Returns the form that the request's If-Match or If-None-Match speaks of: the one that would be sent, else
 * the first of those that the visitor takes whose tag is named. The tag of that form is compared, and sent
 * with a 304. `taken` is asked only where there is such a field.
 */
export function namedForm<Form extends string>(
  request: readonly Field[],
  etag: string | undefined,
  chosen: Form | null,
  taken: () => readonly Form[],
): Form | null {
  const condition = fieldValue(request, "if-match") ?? fieldValue(request, "if-none-match");
  if (condition === undefined || etag === undefined) return chosen;
  const named = new Set(listMembers(condition).map(opaqueTag));
  const found = [chosen, ...taken(), null].find((form) =>
    named.has(opaqueTag(formTag(etag, form))),
  );
  return found === undefined ? chosen : found;
}
