// What a content coding changes of a response's head.

import type { Coding } from "./content-coding.ts";
import { taggedFields } from "./form-tag.ts";
import type { Field } from "./http-fields.ts";

/** Returns the head of the coded form; `fields` are those of the uncoded one. */
export function codedFields(fields: readonly Field[], coding: Coding | null): readonly Field[] {
  if (coding === null) return fields;
  return [...taggedFields(fields, coding), ["Content-Encoding", coding]];
}
