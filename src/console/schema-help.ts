// What a JSON Schema says about a place of a document: its description, and the fields that it may have. Pure.

import type { JsonKey } from "./json-place.ts";

export type HelpSchema = {
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, HelpSchema>>;
  readonly patternProperties?: Readonly<Record<string, HelpSchema>>;
  readonly additionalProperties?: HelpSchema | boolean;
  readonly items?: HelpSchema;
  readonly anyOf?: readonly HelpSchema[];
  readonly oneOf?: readonly HelpSchema[];
  readonly allOf?: readonly HelpSchema[];
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, HelpSchema>>;
};

export type SchemaHelp = {
  readonly path: string;
  readonly description: string | undefined;
  /** The fields of the object there, with the first sentence about each. */
  readonly fields: readonly (readonly [name: string, about: string])[];
};

/** Tells of the innermost place that the schema knows. */
export function helpAt(root: HelpSchema | undefined, keys: readonly JsonKey[]): SchemaHelp {
  if (root === undefined) return { path: "", description: undefined, fields: [] };
  let found: readonly HelpSchema[] = branches(root, root);
  let described = found.find(({ description }) => description !== undefined)?.description;
  const path: JsonKey[] = [];
  for (const key of keys) {
    const inner = found.flatMap((one) => branchesAt(root, one, key));
    if (inner.length === 0) break;
    path.push(key);
    found = inner;
    described = inner.find(({ description }) => description !== undefined)?.description;
  }
  const values = found.flatMap(valuesOf);
  const more = values.length > 0 ? `One of ${[...new Set(values)].join(", ")}.` : "";
  const description = [described, more]
    .filter((text) => text !== undefined && text !== "")
    .join(" ");
  return {
    path: path.join(" › "),
    description: description === "" ? undefined : description,
    fields: fieldsOf(root, found),
  };
}

/** The alternatives of a schema, references followed; a schema that refers to itself ends at itself. */
function branches(
  root: HelpSchema,
  schema: HelpSchema,
  seen: ReadonlySet<HelpSchema> = new Set(),
): readonly HelpSchema[] {
  if (seen.has(schema)) return [];
  const known = new Set(seen).add(schema);
  const { $ref: ref, anyOf = [], oneOf = [], allOf = [] } = schema;
  const target = ref === undefined ? undefined : root.$defs?.[ref.replace(/^#\/\$defs\//, "")];
  const inner = [...(target === undefined ? [] : [target]), ...anyOf, ...oneOf, ...allOf];
  return [schema, ...inner.flatMap((one) => branches(root, one, known))];
}

function branchesAt(root: HelpSchema, schema: HelpSchema, key: JsonKey): readonly HelpSchema[] {
  const inner = typeof key === "number" ? schema.items : propertyOf(schema, key);
  return inner === undefined ? [] : branches(root, inner);
}

function propertyOf(
  { properties = {}, patternProperties = {}, additionalProperties }: HelpSchema,
  key: string,
): HelpSchema | undefined {
  if (Object.hasOwn(properties, key)) return properties[key];
  const [, byPattern] =
    Object.entries(patternProperties).find(([pattern]) => new RegExp(pattern, "u").test(key)) ?? [];
  return byPattern ?? (typeof additionalProperties === "object" ? additionalProperties : undefined);
}

function valuesOf(schema: HelpSchema): readonly string[] {
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value));
  return schema.const === undefined ? [] : [JSON.stringify(schema.const)];
}

function fieldsOf(
  root: HelpSchema,
  found: readonly HelpSchema[],
): readonly (readonly [string, string])[] {
  const fields = new Map<string, string>();
  for (const { properties = {} } of found)
    for (const [name, schema] of Object.entries(properties)) {
      const about =
        branches(root, schema).find(({ description }) => description !== undefined)?.description ??
        "";
      if (!fields.has(name)) fields.set(name, about.split(/(?<=\.)\s/)[0] ?? "");
    }
  return [...fields];
}
