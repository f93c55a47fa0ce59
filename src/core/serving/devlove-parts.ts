// What the schema of devlove (devlove.ts, devlove-cache.ts) is made of.
//
// Keywords beside JSON Schema's: `x-check` names a check of the value, `x-key-check` a check of the names in
// an object with free names, `x-unique-by` the part in which the elements of a list differ ("" for the
// element itself). `x-unset` marks a key without a default; it is null if the document does not set it.

import { Type } from "typebox";
import type { TOptional, TSchema } from "typebox";

const lifetimeMaxS = 315_360_000; // Ten years of 365 days: longer is a slip of the keyboard.
export const timeoutMaxS = 3_600;

/** Checks of one text, and of the parts of an object or a list; devlove-validate.ts maps them to functions. */
export type TextCheck =
  | "acme_directory"
  | "address_range"
  | "backend_host"
  | "backend_url"
  | "cookie_pattern"
  | "domain"
  | "file_path"
  | "header_name"
  | "header_value"
  | "mail_address"
  | "match_header"
  | "match_query"
  | "match_value"
  | "media_type"
  | "index_name"
  | "origin_path"
  | "path_pattern"
  | "pause_end"
  | "preset_base"
  | "purge_key"
  | "query_name"
  | "redirect_target"
  | "request_header"
  | "vary_header"
  | "views_dir";
export type PartsCheck =
  | "cache"
  | "cache_rules"
  | "cookies"
  | "headers"
  | "match"
  | "preset"
  | "query"
  | "redirects"
  | "request_limit"
  | "request_limits";

export type KeyOptions = {
  readonly description?: string;
  readonly default?: unknown;
  /** Valid values, for editors and for the key table. */
  readonly examples?: readonly unknown[];
};
type Annotations = KeyOptions & { readonly "x-check"?: PartsCheck };

export function text(check: TextCheck, options: KeyOptions & { readonly maxLength?: number } = {}) {
  return Type.String({ maxLength: 1024, ...options, "x-check": check });
}

export function section<Properties extends Record<string, TSchema>>(
  properties: Properties,
  options: Annotations = {},
) {
  return Type.Object(properties, { ...options, additionalProperties: false });
}

export function lifetimeS(options: KeyOptions) {
  return Type.Optional(Type.Integer({ ...options, minimum: 0, maximum: lifetimeMaxS }));
}

export function timeout(options: KeyOptions) {
  return Type.Optional(Type.Number({ ...options, minimum: 0.1, maximum: timeoutMaxS }));
}

export function flag(options: KeyOptions) {
  return Type.Optional(Type.Boolean(options));
}

export function listSchema<Item extends TSchema>(
  item: Item,
  maxItems: number,
  uniqueBy: string,
  options: Annotations = {},
) {
  return Type.Optional(Type.Array(item, { ...options, maxItems, "x-unique-by": uniqueBy }));
}

export function methodsSchema(options: KeyOptions) {
  const method = Type.Enum(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
  return listSchema(method, 6, "", options);
}

/** Headers that are set and removed; `check` judges their names. */
export function headersSchema(
  check: "header_name" | "request_header",
  { set, remove }: { readonly set: KeyOptions; readonly remove: KeyOptions },
  options: KeyOptions,
) {
  return section(
    {
      set: Type.Optional(
        Type.Record(Type.String(), text("header_value", { maxLength: 4096 }), {
          "x-key-check": check,
          maxProperties: 100,
          default: {},
          ...set,
        }),
      ),
      remove: listSchema(text(check), 100, "", { default: [], ...remove }),
    },
    { ...options, "x-check": "headers" },
  );
}

/** A key without a default: null is in force if the document does not set it. */
export type Unset = { readonly "x-unset": true };

export function orUnset<Schema extends TSchema>(
  schema: TOptional<Schema>,
): TOptional<Schema> & Unset {
  const mark: Unset = { "x-unset": true };
  // A copy would lose TypeBox's own marks, which are not enumerable.
  return Object.assign(schema, mark);
}
