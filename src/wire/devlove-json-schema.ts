// `devlove/1` as JSON Schema, draft 2020-12, for editors. It is made from the schema that validates, and
// written to config/devlove-1.schema.json.
//
// It is never stricter than validateDevlove, and laxer where JSON Schema cannot say it: which hosts a
// document may name, where backends may point, and redirects that lead to themselves.

import { mailAddressPattern } from "../core/outgoing.ts";
import { DevloveSchema } from "../core/serving/devlove.ts";
import type { ShapeSchema } from "./shape-errors.ts";

export type JsonSchema = { readonly [keyword: string]: unknown };

export const devloveJsonSchemaPath = "/presentation-api/v1/devlove-1.schema.json";

/** The checks of texts that are regular expressions. */
const TEXT_PATTERNS: ReadonlyMap<string, string> = new Map([
  ["acme_directory", "^[Hh][Tt][Tt][Pp][Ss]://[^\\s@#?/\\\\]+(?:[/?][^\\s#\\\\]*)?$"],
  ["backend_url", "^[Hh][Tt][Tt][Pp][Ss]?://[^\\s@?#\\\\]+$"],
  ["cookie_pattern", "^[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:=[!#-+\\x2d-:<-\\[\\]-~]*)?$"],
  ["domain", "^[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9])?$"],
  ["header_name", "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"],
  ["header_value", "^[^\\r\\n]*$"],
  ["index_name", "^[^/\\\\]+$"],
  ["match_header", "^[!#$%&'*+.^`|~0-9A-Za-z-]+$"],
  ["match_query", "^[^&=#?][^&#]*$"],
  ["match_value", "^[^\\r\\n]+$"],
  ["media_type", "^[!#$%&'+.^`|~0-9A-Za-z_-]+/(?:\\*|[!#$%&'+.^`|~0-9A-Za-z_-]+)$"],
  ["origin_path", "^/[^\\s#]*$"],
  ["mail_address", mailAddressPattern],
  ["path_pattern", "^[/*][^?#\\s]*$"],
  [
    "pause_end",
    "^\\d{4}-\\d\\d-\\d\\d[Tt]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d{1,9})?(?:[Zz]|[+-]\\d\\d:\\d\\d)$",
  ],
  ["preset_base", "^(?:/[^?#\\s*]*[^?#\\s*/])?$"],
  ["query_name", "^[^&=#]+$"],
  ["redirect_target", "^(?:/|[Hh][Tt][Tt][Pp][Ss]?://)[^\\s*\\\\]*$"],
  ["request_header", "^[!#$%&'*+.^`|~0-9A-Za-z-]+$"],
  ["vary_header", "^[!#$%&'*+.^`|~0-9A-Za-z-]+$"],
  ["views_dir", "^[^/\\\\]"],
]);

/** The checks of objects that are schemas. */
const PARTS_SCHEMAS: ReadonlyMap<string, JsonSchema> = new Map([
  [
    "cache",
    {
      not: {
        properties: { bypass: { const: true } },
        required: ["bypass"],
        anyOf: [
          { required: ["ttl_s"] },
          { required: ["negative_ttl_s"] },
          { required: ["browser_ttl_s"] },
        ],
      },
    },
  ],
  [
    "query",
    {
      anyOf: [{ required: ["ignore"] }, { required: ["keep"] }, { required: ["sort"] }],
      not: { required: ["ignore", "keep"] },
    },
  ],
]);

/** Keywords that mean the same in both. */
const kept = [
  "type",
  "enum",
  "minimum",
  "maximum",
  "maxLength",
  "minItems",
  "maxItems",
  "maxProperties",
] as const;

export function devloveJsonSchema(): JsonSchema {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "urn:accel-agent:devlove-1",
    title: "devlove/1",
    description: "Configures one main domain and its sub-domains.",
    ...bare(DevloveSchema, null),
  };
}

export function devloveJsonSchemaText(): string {
  return `${JSON.stringify(devloveJsonSchema(), undefined, 2)}\n`;
}

/** `key` is the key as in the key table, "" for a domain, null above it. */
function named(schema: ShapeSchema, key: string | null): JsonSchema {
  const { description, default: fallback, examples } = schema;
  return {
    ...(key !== null && key !== "" && { title: key }),
    ...(description !== undefined && { description }),
    ...(fallback !== undefined && { default: fallback }),
    ...(examples !== undefined && { examples }),
    ...bare(schema, key),
  };
}

/** Writes a schema without what it tells people. */
function bare(schema: ShapeSchema, key: string | null): JsonSchema {
  if (schema.anyOf !== undefined) return { anyOf: schema.anyOf.map((branch) => bare(branch, key)) };
  const check = schema["x-check"] ?? "";
  const pattern = TEXT_PATTERNS.get(check);
  return {
    ...Object.fromEntries(
      kept.flatMap((keyword) =>
        schema[keyword] === undefined ? [] : [[keyword, schema[keyword]]],
      ),
    ),
    ...(pattern !== undefined && { pattern }),
    ...(schema["x-unique-by"] === "" && { uniqueItems: true }),
    ...PARTS_SCHEMAS.get(check),
    ...parts(schema, key),
  };
}

function parts(
  { properties, patternProperties, items, required, ...schema }: ShapeSchema,
  key: string | null,
): JsonSchema {
  if (items !== undefined) return { items: bare(items, key) };
  const free = Object.values(patternProperties ?? {})[0];
  if (free !== undefined)
    return {
      propertyNames: { pattern: TEXT_PATTERNS.get(schema["x-key-check"] ?? "") },
      additionalProperties: bare(free, key ?? ""),
    };
  if (properties === undefined) return {};
  const prefix = key === null || key === "" ? "" : `${key}.`;
  const all = Object.entries(properties).map(
    ([name, child]) => [name, named(child, key === null ? null : prefix + name)] as const,
  );
  return {
    ...(required !== undefined && required.length > 0 && { required }),
    properties: Object.fromEntries(all),
    additionalProperties: false,
  };
}
