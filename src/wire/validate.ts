// Makes typed values of `unknown` by schema: every message and body of both programs comes in through here.

import { Type, type Static, type TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { nearest } from "../core/nearest.ts";

export type FieldError = { readonly path: string; readonly message: string };
export type Decoded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly errors: readonly FieldError[] };
export type Decoder<T> = (raw: unknown) => Decoded<T>;

/** Makes an object schema with these members and no others. */
export function closed<const P extends Record<string, TSchema>>(
  properties: P,
): ReturnType<typeof Type.Object<P>> {
  return Type.Object(properties, { additionalProperties: false });
}

/** The most characters of a name in an error; an unknown field may have any name. */
const nameCharsMax = 200;

/**
 * Makes a decoder that compiles the schema when it is called first and is cheap from then on. A program starts
 * with many schemas and meets few of them soon. Paths are JSON pointers, "" is the whole value.
 */
export function decoder<S extends TSchema>(schema: S): Decoder<Static<S>> {
  let compiled: ReturnType<typeof Compile<S>> | undefined;
  let known: ReadonlySet<string> | undefined;
  return (raw) => {
    compiled ??= Compile(schema);
    const check = compiled;
    if (check.Check(raw)) return { ok: true, value: raw };
    known ??= namesIn(schema);
    const errors: FieldError[] = [];
    for (const error of check.Errors(toldPart(raw, known))) {
      errors.push(...describe(error, schema));
    }
    return {
      ok: false,
      errors: errors.length > 0 ? errors : [{ path: "", message: "is not valid" }],
    };
  };
}

type RawError = {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: object;
};

function describe(
  { keyword, instancePath, message, params }: RawError,
  schema: TSchema,
): readonly FieldError[] {
  const listed = (key: string): readonly unknown[] => {
    const value: unknown = Object.entries(params).find(([name]) => name === key)?.[1];
    return Array.isArray(value) ? value : [];
  };
  const names = (key: string): readonly string[] => listed(key).map(String);
  // TypeBox reports an unknown member under both keywords, and many members only under `boolean`.
  if (keyword === "additionalProperties") return [];
  if (keyword === "boolean") {
    const name = lastPart(instancePath);
    const near = name.length > nameCharsMax ? undefined : nearest(name, topNames(schema));
    return [
      {
        path: `${instancePath.slice(0, instancePath.lastIndexOf("/"))}/${pointerPart(name)}`,
        message: `unknown field${near === undefined ? "" : `; did you mean ${near}?`}`,
      },
    ];
  }
  if (keyword === "required")
    return names("requiredProperties").map((name) => ({
      path: `${instancePath}/${pointerPart(name)}`,
      message: "is required",
    }));
  if (keyword === "enum")
    return [
      {
        path: instancePath,
        message: `must be one of ${listed("allowedValues")
          .map((value) => JSON.stringify(value))
          .join(", ")}`,
      },
    ];
  // A pattern says little to people, so the description of the field is used if there is one.
  const described = keyword === "pattern" ? descriptionOf(schema, lastPart(instancePath)) : "";
  return [{ path: instancePath, message: described === "" ? message : `must be: ${described}` }];
}

function descriptionOf(schema: TSchema, name: string): string {
  const { properties = {} } = schema as {
    properties?: Readonly<Record<string, { readonly description?: string }>>;
  };
  return (Object.hasOwn(properties, name) ? properties[name]?.description : undefined) ?? "";
}

function topNames(schema: TSchema): readonly string[] {
  return Object.keys((schema as { properties?: object }).properties ?? {});
}

/** Returns the last part of a pointer, unescaped (RFC 6901 §4). */
function lastPart(pointer: string): string {
  const part = pointer.slice(pointer.lastIndexOf("/") + 1);
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

function pointerPart(name: string): string {
  const shown = name.length <= nameCharsMax ? name : `${name.slice(0, nameCharsMax)}…`;
  return shown.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** Writes errors as one line for logs and receipts. */
export function describeErrors(errors: readonly FieldError[]): string {
  return errors
    .map(({ path, message }) => (path === "" ? message : `${path}: ${message}`))
    .join("; ");
}

// Reduces a refused value to the part that its errors are reported for. TypeBox takes time quadratic in the
// number of unknown members: 200,000 took 34 s.

/**
 * The most unknown names that are reported of one object; every name that the schema knows is kept besides.
 */
const strangersMax = 20;
/** The deepest level that is reduced; no schema goes deeper. */
const depthMax = 16;

/** The names of properties anywhere in a schema. */
function namesIn(schema: TSchema): ReadonlySet<string> {
  const names = new Set<string>();
  const walk = (part: unknown): void => {
    if (typeof part !== "object" || part === null) return;
    for (const [keyword, value] of Object.entries(part)) {
      if (keyword === "properties" && typeof value === "object" && value !== null)
        for (const name of Object.keys(value)) names.add(name);
      walk(value);
    }
  };
  walk(schema);
  return names;
}

/** Returns the value itself if no object in it has too many members. */
export function toldPart(value: unknown, names: ReadonlySet<string>, depth = 0): unknown {
  if (typeof value !== "object" || value === null || depth > depthMax) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => toldPart(item, names, depth + 1));
    return items.every((item, i) => item === value[i]) ? value : items;
  }
  const all = Object.keys(value);
  const known = all.length <= strangersMax ? all : all.filter((name) => names.has(name));
  const strangers = all.length <= strangersMax ? [] : firstStrangers(all, names);
  let isChanged = known.length + strangers.length < all.length;
  const kept = [...known, ...strangers].map((name) => {
    const member: unknown = Reflect.get(value, name);
    const told = toldPart(member, names, depth + 1);
    isChanged ||= told !== member;
    return [name, told] as const;
  });
  return isChanged ? Object.fromEntries(kept) : value;
}

function firstStrangers(all: readonly string[], names: ReadonlySet<string>): readonly string[] {
  const first: string[] = [];
  for (const name of all) {
    if (first.length === strangersMax) break;
    if (!names.has(name)) first.push(name);
  }
  return first;
}
