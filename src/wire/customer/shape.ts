// What the schemas of the customer API have in common: bodies that come in are closed and name their read-only fields, answers are open
// so that a client of today reads what a later service adds.

import { Type, type Static, type TObject, type TProperties, type TSchema } from "typebox";
import { closed, decoder, type Decoder } from "../validate.ts";

/** The version prefix of every path. */
export const customerApiPrefix = "/presentation-api/v1";

/** The body that a request may carry. */
export type Body<T> = {
  readonly schema: TSchema;
  readonly decode: Decoder<T>;
  /** Fields of the resource that are accepted and ignored, so that what was read can be edited and sent back. */
  readonly readOnly: readonly string[];
};

/**
 * The words of a schema for its readers. A schema with a title has a place of its own in the OpenAPI
 * document; examples are valid.
 */
export type About = {
  readonly title?: string;
  readonly description?: string;
  readonly examples?: readonly unknown[];
};

export function body<const P extends Record<string, TSchema>>(
  properties: P,
  readOnly: readonly string[] = [],
  about: About = {},
): Body<Static<ReturnType<typeof closed<P>>>> {
  const schema = closed(properties);
  return { schema: { ...schema, ...about }, decode: decoder(schema), readOnly };
}

/** The body that an answer carries. */
export type Shape<T> = { readonly schema: TSchema; readonly decode: Decoder<T> };

export function shape<S extends TSchema>(schema: S): Shape<Static<S>> {
  return { schema, decode: decoder(schema) };
}

export function open<const P extends TProperties>(properties: P, about: About = {}): TObject<P> {
  return Type.Object(properties, { ...about });
}

/** The id of a resource, counted from 1. */
export const Id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });

/** Booleans as clients send them; `isTrue` reads one. */
export const BooleanLike = Type.Unsafe<boolean | "true" | "True" | "false" | "False">({
  enum: [true, false, "true", "True", "false", "False"],
  description: "True or false, as a boolean or as a string.",
});

export const BooleanLikeOrNull = Type.Unsafe<Static<typeof BooleanLike> | null>({
  enum: [true, false, "true", "True", "false", "False", null],
});

export function isTrue(value: Static<typeof BooleanLike> | undefined): boolean {
  return value === true || value === "true" || value === "True";
}

/**
 * Makes the schema of a name that people give: visible at both ends, without control characters (bot names
 * are joined with line feeds in digests).
 */
export function nameText(maxLength: number): ReturnType<typeof Type.String> {
  return Type.String({
    minLength: 1,
    maxLength,
    pattern:
      "^[^\\s\\u0000-\\u001f\\u007f](?:[^\\u0000-\\u001f\\u007f]*[^\\s\\u0000-\\u001f\\u007f])?$",
  });
}

export const TagsText = Type.String({
  maxLength: 4_096,
  description: "Comma-separated; at most 100 tags of at most 255 characters each.",
});
export const DomainText = Type.String({
  minLength: 1,
  maxLength: 1_024,
  description:
    "A host name with at least one dot; lower-cased, IDNA read as ASCII, a dot at the end dropped.",
});
