// Finds every way in which a value does not fit a schema, and words each for the person who wrote the value.
//
// TypeBox's own errors stop at eight and say neither what was found nor what was meant. This code walks the
// subset of JSON Schema that our documents are written in: object (closed, or with free names), array,
// string, number, integer, boolean, null, enum, and a type or null. It is never laxer than TypeBox's Check,
// which stays the guard that types the value.

import { fitsType, typeInWords } from "./shape-types.ts";

/** The keywords that are read; TypeBox schemas have this form. */
export type ShapeSchema = {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, ShapeSchema>>;
  readonly patternProperties?: Readonly<Record<string, ShapeSchema>>;
  readonly required?: readonly string[] | undefined;
  readonly items?: ShapeSchema;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly anyOf?: readonly ShapeSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly default?: unknown;
  readonly description?: string;
  readonly examples?: readonly unknown[];
  readonly "x-check"?: string;
  readonly "x-key-check"?: string;
  readonly "x-unique-by"?: string;
};

export type ShapePath = readonly (string | number)[];

export type ShapeError = {
  readonly path: ShapePath;
  readonly message: string;
  readonly allowed?: readonly string[];
  /** A text that is not among those allowed, from which a caller may suggest the nearest. */
  readonly mistaken?: string;
};

export type ShapeVisitor = {
  readonly error: (error: ShapeError) => void;
  /** Called for each value whose own type and range are right, before what is in it is walked. */
  readonly found: (schema: ShapeSchema, value: unknown, path: ShapePath) => void;
};

/**
 * The most characters of a quoted name. Errors repeat names, so without a limit a hostile document would be
 * answered with a thousand times its size.
 */
const quotedCharsMax = 200;

export function quote(text: string): string {
  const shown = text.length <= quotedCharsMax ? text : `${text.slice(0, quotedCharsMax)}…`;
  return JSON.stringify(shown);
}

export function pointer(path: ShapePath): string {
  return path
    .map((token) => `/${clip(String(token)).replaceAll("~", "~0").replaceAll("/", "~1")}`)
    .join("");
}

function clip(token: string): string {
  return token.length <= quotedCharsMax ? token : `${token.slice(0, quotedCharsMax)}…`;
}

export function walkShape(
  schema: ShapeSchema,
  value: unknown,
  visitor: ShapeVisitor,
  path: ShapePath = [],
): void {
  const { bare, nullable } = withoutNull(schema);
  const fault = ownFault(bare, value, nullable);
  if (fault !== undefined) return visitor.error({ path, ...fault });
  visitor.found(value === null ? schema : bare, value, path);
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries())
      if (bare.items !== undefined) walkShape(bare.items, item, visitor, [...path, at]);
  } else if (typeof value === "object" && value !== null)
    walkObject(bare, new Map(Object.entries(value)), visitor, path);
}

function walkObject(
  schema: ShapeSchema,
  members: ReadonlyMap<string, unknown>,
  visitor: ShapeVisitor,
  path: ShapePath,
): void {
  const known = new Map(Object.entries(schema.properties ?? {}));
  const free = Object.values(schema.patternProperties ?? {})[0];
  for (const [key, value] of members) {
    const child = known.get(key) ?? free;
    if (child !== undefined) walkShape(child, value, visitor, [...path, key]);
    else
      visitor.error({
        path: [...path, key],
        message: `${quote(key)} is not a known key`,
        allowed: [...known.keys()],
        mistaken: key,
      });
  }
  for (const key of schema.required ?? []) {
    if (!members.has(key))
      visitor.error({ path: [...path, key], message: `\`${key}\` is missing` });
  }
}

/** Returns a schema that is a type or null without the null. */
export function withoutNull(schema: ShapeSchema): {
  readonly bare: ShapeSchema;
  readonly nullable: boolean;
} {
  const bare = schema.anyOf?.find((branch) => branch.type !== "null");
  return bare === undefined ? { bare: schema, nullable: false } : { bare, nullable: true };
}

type OwnFault = Omit<ShapeError, "path"> | undefined;

function ownFault(schema: ShapeSchema, value: unknown, nullable: boolean): OwnFault {
  if (value === null && nullable) return undefined;
  if (schema.enum !== undefined) return enumFault(schema.enum, value);
  if (!fitsType(schema.type, value)) {
    return {
      message: `must be ${typeInWords(schema.type)}${nullable ? " or null" : ""}, found ${found(value)}`,
    };
  }
  const message = rangeFault(schema, value);
  return message === undefined ? undefined : { message };
}

function enumFault(values: readonly unknown[], value: unknown): OwnFault {
  if (values.includes(value)) return undefined;
  const allowed = values.map(String);
  const message = `must be one of ${allowed.join(", ")}, found ${found(value)}`;
  return typeof value === "string" ? { message, allowed, mistaken: value } : { message, allowed };
}

function found(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value === "string") return `the string ${quote(value)}`;
  return typeof value === "number" ? `the number ${value}` : String(value);
}

function rangeFault(schema: ShapeSchema, value: unknown): string | undefined {
  const {
    minimum = -Infinity,
    maximum = Infinity,
    maxLength = Infinity,
    minItems = 0,
    maxItems = Infinity,
    maxProperties = Infinity,
  } = schema;
  if (typeof value === "number") {
    if (value < minimum || value > maximum)
      return `must be ${between(minimum, maximum)}, found ${value}`;
  } else if (typeof value === "string") {
    if (value.length > maxLength)
      return `must have at most ${maxLength} characters, found ${value.length}`;
  } else if (Array.isArray(value)) {
    if (value.length < minItems || value.length > maxItems)
      return `must have ${between(minItems, maxItems)} elements, found ${value.length}`;
  } else if (typeof value === "object" && value !== null) {
    const count = Object.keys(value).length;
    if (count > maxProperties) return `must have at most ${maxProperties} entries, found ${count}`;
  }
  return undefined;
}

function between(least: number, most: number): string {
  if (most === Infinity) return `at least ${least}`;
  return least === -Infinity ? `at most ${most}` : `${least} to ${most}`;
}
