// The media types that a cache rule asks of an answer (`match.media_type`), written as in Accept (RFC 9110 §12.5.1): `text/css`,
// or `image/*` for all types of one kind.

import { mimeOf } from "../http/content-coding.ts";
import { fieldValue, type Field } from "../http/http-fields.ts";

export type MediaTypes = {
  /** As the rule writes them. */
  readonly names: readonly string[];
  /** Judges the head of an answer. One without a Content-Type, or with one that cannot be read, has no media type. */
  readonly holds: (fields: readonly Field[]) => boolean;
};

/** A token, a slash and a token (RFC 9110 §5.6.2, §8.3.1). */
const mediaType = /^([!#$%&'*+.^_`|~0-9a-z-]+)\/[!#$%&'*+.^_`|~0-9a-z-]+$/;
const typeCharsMax = 127;

/** Case and parameters such as `charset` make no difference. */
export function compileMediaTypes(names: readonly string[]): MediaTypes {
  const wanted = new Set(names.map((name) => name.toLowerCase()));
  return {
    names,
    holds: (fields) => {
      const said = mimeOf(fieldValue(fields, "content-type"));
      const kind = mediaType.exec(said)?.[1];
      // What an origin writes is not a pattern.
      return (
        kind !== undefined && !said.includes("*") && (wanted.has(said) || wanted.has(`${kind}/*`))
      );
    },
  };
}

/** Says what is wrong with a media type that a rule asks for. */
export function mediaTypeFault(text: string): string | undefined {
  if (text.includes(";"))
    return "has parameters: those of an answer are ignored, so leave them out";
  if (text === "*/*" || text === "*")
    return "is every media type: a rule without `media_type` applies to every answer";
  const lower = text.toLowerCase();
  const [kind = ""] = lower.split("/", 1);
  const isWellFormed = mediaType.test(lower) && text.length <= typeCharsMax;
  const stars = lower.replace(/\/\*$/, "");
  return isWellFormed && kind !== "" && !stars.includes("*")
    ? undefined
    : "is not a media type: write `type/subtype`, or `type/*` for all of one type";
}
