// The head of an answer as it is shared and stored.

import { cacheTagsOf, tagBytesMax, tagsMax } from "../../../core/http/cache-tags.ts";
import { formatHttpDate } from "../../../core/http/http-date.ts";
import { fieldValue, withoutFields, type Field } from "../../../core/http/http-fields.ts";
import { passedFields, type OriginDeps } from "../origin/origin-answer.ts";
import type { OriginAnswer } from "../origin/origin-pools.ts";

const cookie: ReadonlySet<string> = new Set(["set-cookie"]);
/** Age is reckoned anew and the length is the body's. */
const unstored: ReadonlySet<string> = new Set(["content-length", "age"]);

/**
 * Returns the fields that all who share the answer get. A cookie is one visitor's; where a response sets one,
 * the rule strips it.
 */
export function sharedAnswerFields(answer: OriginAnswer): readonly Field[] {
  return withoutFields(passedFields(answer), cookie);
}

export function storedFields(
  fields: readonly Field[],
  { receivedAtMs }: OriginAnswer,
): readonly Field[] {
  const stored = withoutFields(fields, unstored);
  return fieldValue(stored, "date") === undefined
    ? [...stored, ["Date", formatHttpDate(receivedAtMs)]]
    : stored;
}

/**
 * Returns the tags that the answer is stored with; none where it has no such field. Undefined: they are too
 * many or too long. That is told, and nothing may be stored: what lacks a tag would outlast its clear.
 */
export function storedTags(
  { problems }: Pick<OriginDeps, "problems">,
  domain: string,
  { fields }: OriginAnswer,
): { readonly tags?: string } | undefined {
  const found = cacheTagsOf(fields);
  if (found.kind === "none") return {};
  if (found.kind === "tags") return { tags: found.words };
  problems.tell(
    "warn",
    domain,
    "an answer is not stored: it has too many or too long tags",
    tooMuch,
  );
  return undefined;
}

const tooMuch = new Error(
  `at most ${tagsMax} tags of at most ${tagBytesMax} bytes each are stored`,
);

export function hasNoBody({ status }: OriginAnswer): boolean {
  return status === 204;
}
