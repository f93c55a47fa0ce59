// Reads a document again that was accepted before, by its shape alone, whatever the rules of this release
// are.
//
// Shape is what code relies on: objects, lists, texts, numbers, and words of a known set. Members that this
// release does not know are left out. Ranges, lengths, counts and the meaning of texts are rules: they are
// judged when a document is accepted, and not again.

import { pointer, withoutNull, type ShapePath, type ShapeSchema } from "./shape-errors.ts";
import { fitsType, typeInWords } from "./shape-types.ts";

export type ShapeTaken =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly reason: string };

class Misfit extends Error {}

/** Takes a copy of the value by its schema. Never throws. */
export function takeShape(schema: ShapeSchema, value: unknown): ShapeTaken {
  try {
    return { ok: true, value: taken(schema, value, []) };
  } catch (error) {
    if (error instanceof Misfit) return { ok: false, reason: error.message };
    throw error;
  }
}

function taken(schema: ShapeSchema, value: unknown, path: ShapePath): unknown {
  const { bare, nullable } = withoutNull(schema);
  if (value === null && nullable) return null;
  const fault = faultOf(bare, value);
  if (fault !== undefined) throw new Misfit(`${pointer(path)}: ${fault}`);
  if (Array.isArray(value)) {
    const { items } = bare;
    if (items === undefined) return value;
    return value.map((item: unknown, at) => taken(items, item, [...path, at]));
  }
  return typeof value === "object" && value !== null ? membersOf(bare, value, path) : value;
}

function membersOf(schema: ShapeSchema, value: object, path: ShapePath): unknown {
  const { properties = {}, patternProperties = {}, required = [] } = schema;
  const [free] = Object.values(patternProperties);
  const members = Object.entries(value).flatMap(([key, member]): [string, unknown][] => {
    const child = Object.hasOwn(properties, key) ? properties[key] : free;
    return child === undefined ? [] : [[key, taken(child, member, [...path, key])]];
  });
  const copy: Record<string, unknown> = Object.fromEntries(members);
  for (const key of required)
    if (!Object.hasOwn(copy, key)) throw new Misfit(`${pointer([...path, key])}: is missing`);
  return copy;
}

/**
 * Says how a value does not fit. A pattern belongs to the shape, because it says what kind of text it is (a
 * digest names a file on disk).
 */
function faultOf(schema: ShapeSchema, value: unknown): string | undefined {
  if (schema.const !== undefined) return value === schema.const ? undefined : "is another value";
  if (schema.enum !== undefined)
    return schema.enum.includes(value) ? undefined : `is none of ${schema.enum.join(", ")}`;
  if (!fitsType(schema.type, value)) return `is not ${typeInWords(schema.type)}`;
  if (typeof value !== "string" || schema.pattern === undefined) return undefined;
  return new RegExp(schema.pattern).test(value) ? undefined : "is another kind of text";
}
