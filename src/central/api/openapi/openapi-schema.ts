// Schemas as the OpenAPI document shows them: those with a title have a place of their own and are referred
// to. The schemas that validate are not changed.

export type JsonObject = { readonly [key: string]: unknown };

/** The schemas that were given a place, by title. */
export type Components = Map<string, JsonObject>;

export const jsonObjectOf = (value: unknown): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonObject) // Its keys are strings.
    : {};

/** Keywords whose values are schemas by name, and those whose values are data. */
const named = new Set(["properties", "patternProperties"]);
const data = new Set(["enum", "const", "default", "examples", "required"]);

/** Shows a schema by reference if it has a title. Throws if two schemas with the same title differ. */
export function shownSchema(schema: unknown, components: Components): JsonObject {
  const shown = shownInline(schema, components);
  const { title } = shown;
  if (typeof title !== "string") return shown;
  const before = components.get(title);
  if (before !== undefined && JSON.stringify(before) !== JSON.stringify(shown))
    throw new TypeError(`two schemas have the title ${title}`);
  components.set(title, shown);
  return { $ref: `#/components/schemas/${title}` };
}

/** Shows a schema in place, whatever its title. */
export function shownInline(schema: unknown, components: Components): JsonObject {
  const child = (value: unknown): unknown =>
    typeof value === "boolean" ? value : shownSchema(value, components);
  const entries = Object.entries(jsonObjectOf(schema)).map(([keyword, value]) => {
    if (data.has(keyword)) return [keyword, value] as const;
    if (named.has(keyword)) {
      const children = Object.entries(jsonObjectOf(value));
      return [keyword, Object.fromEntries(children.map(([name, one]) => [name, child(one)]))];
    }
    if (Array.isArray(value)) return [keyword, value.map((one) => child(one))] as const;
    return [keyword, typeof value === "object" ? child(value) : value] as const;
  });
  return plain(Object.fromEntries(entries));
}

/** Writes a schema in fewer words that mean the same. */
function plain({ anyOf, patternProperties, ...schema }: JsonObject): JsonObject {
  const free = jsonObjectOf(patternProperties)["^.*$"];
  const branches = Array.isArray(anyOf) ? anyOf.map((branch) => jsonObjectOf(branch)) : [];
  const values = branches.flatMap((branch) => ("const" in branch ? [branch["const"]] : []));
  const isEnum = branches.length > 0 && values.length === branches.length;
  return {
    ...schema,
    ...(isEnum ? { type: "string", enum: values } : anyOf !== undefined && { anyOf }),
    ...(free === undefined
      ? patternProperties !== undefined && { patternProperties }
      : { additionalProperties: free }),
  };
}
