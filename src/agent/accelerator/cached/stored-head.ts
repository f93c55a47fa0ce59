// The head of an answer as it is shared and stored.

import { formatHttpDate } from "../../../core/http/http-date.ts";
import { fieldValue, withoutFields, type Field } from "../../../core/http/http-fields.ts";
import { passedFields } from "../origin/origin-answer.ts";
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

export function hasNoBody({ status }: OriginAnswer): boolean {
  return status === 204;
}
