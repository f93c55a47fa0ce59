// The sections of a domain in `devlove/1`, and the helpers that every section is written with.

import { Type } from "typebox";
import type { TSchema } from "typebox";
import {
  BACKEND_DEFAULTS,
  CACHE_DEFAULTS,
  SITE_DEFAULTS,
} from "../core/serving/effective-devlove.ts";

const lifetimeMaxS = 315_360_000; // Ten years of 365 days: longer is a slip of the keyboard.
const timeoutMaxS = 3_600;

/** Checks of one text, and of the parts of an object or a list; devlove-validate.ts maps them to functions. */
export type TextCheck =
  | "backend_host"
  | "backend_url"
  | "cookie_name"
  | "domain"
  | "file_path"
  | "header_name"
  | "header_value"
  | "index_name"
  | "origin_path"
  | "path_pattern"
  | "query_name"
  | "redirect_target"
  | "views_dir";
export type PartsCheck = "cache" | "headers" | "query" | "redirects";

type Options = { readonly description?: string; readonly default?: unknown };
type Annotations = Options & { readonly "x-check"?: PartsCheck };

export function text(check: TextCheck, options: Options & { readonly maxLength?: number } = {}) {
  return Type.String({ maxLength: 1024, ...options, "x-check": check });
}

export function section<Properties extends Record<string, TSchema>>(
  properties: Properties,
  options: Annotations = {},
) {
  return Type.Object(properties, { ...options, additionalProperties: false });
}

export function seconds(options: Options) {
  return Type.Optional(Type.Integer({ ...options, minimum: 0, maximum: lifetimeMaxS }));
}

function timeout(options: Options) {
  return Type.Optional(Type.Number({ ...options, minimum: 0.1, maximum: timeoutMaxS }));
}

export function flag(options: Options) {
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

const QuerySchema = section(
  {
    ignore: listSchema(text("query_name"), 100, "", {
      description: "Names of parameters; `*` stands for any run of characters.",
    }),
    keep: listSchema(text("query_name"), 100, "", {
      description: "Names of parameters; all others are left out.",
    }),
  },
  {
    description:
      "Parameters that are left out of the cache key and of the index, or all but these.",
    "x-check": "query",
  },
);

const CookiesSchema = section(
  {
    ignore: listSchema(text("cookie_name"), 100, "", {
      description:
        'Names of cookies, `*` for any run of characters, `["*"]` for all; beside the published list in caching.md.',
    }),
  },
  {
    description:
      "Cookies that mean nothing for the answer: it is asked for without them. Under `ttl_s` a request with another one is passed on.",
  },
);

export const cacheProperties = {
  ttl_s: seconds({
    description:
      "What may be stored is fresh that long where the origin says nothing of it, or less; without it the origin's headers decide.",
  }),
  bypass: flag({
    description: "The matches are dynamic: never cached.",
    default: CACHE_DEFAULTS.bypass,
  }),
  query: Type.Optional(QuerySchema),
  cookies: Type.Optional(CookiesSchema),
  stale_while_revalidate_s: seconds({
    description: "A stale answer is served that long while a fresh one is fetched.",
    default: CACHE_DEFAULTS.stale_while_revalidate_s,
  }),
  stale_if_error_s: seconds({
    description: "A stale answer is served that long while the origin fails.",
    default: CACHE_DEFAULTS.stale_if_error_s,
  }),
  ignore_set_cookie: flag({
    description: "Strips Set-Cookie and stores the answer.",
    default: CACHE_DEFAULTS.ignore_set_cookie,
  }),
};

export const CacheRuleSchema = section(
  {
    path: text("path_pattern", {
      description: "`*` stands for anything within a segment, `**` for anything at all.",
    }),
    ...cacheProperties,
  },
  { "x-check": "cache" },
);

export const RedirectSchema = section({
  from: text("path_pattern", { description: "A path pattern." }),
  to: text("redirect_target", {
    maxLength: 2048,
    description: "A path or an http(s) URL, used as written.",
  }),
  status: Type.Enum([301, 302, 307, 308], {
    description: "301 and 308 are remembered by browsers; 307 and 308 keep the method.",
  }),
});

export const HeadersSchema = section(
  {
    set: Type.Optional(
      Type.Record(Type.String(), text("header_value", { maxLength: 4096 }), {
        "x-key-check": "header_name",
        maxProperties: 100,
        description: "Name and value; replaces what the origin says.",
      }),
    ),
    remove: listSchema(text("header_name"), 100, "", { description: "Names, in any case." }),
  },
  {
    description: "Set and removed on responses.",
    default: SITE_DEFAULTS.headers,
    "x-check": "headers",
  },
);

const HealthSchema = section({
  path: text("origin_path", { description: "What is asked for with GET, under the site's host." }),
  interval_s: Type.Integer({
    minimum: 1,
    maximum: timeoutMaxS,
    description: "From one check to the next.",
  }),
  timeout_s: Type.Number({
    minimum: 0.1,
    maximum: timeoutMaxS,
    description: "An answer that takes longer is none.",
  }),
  statuses: Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), {
    minItems: 1,
    maxItems: 100,
    "x-unique-by": "",
    description: "What a healthy origin answers; redirects are not followed.",
  }),
});

export const BackendSchema = section({
  urls: Type.Array(text("backend_url", { maxLength: 2048 }), {
    minItems: 1,
    maxItems: 16,
    "x-unique-by": "",
    description: "http(s) URLs of the origin, tried in order of health.",
  }),
  host: Type.Optional(
    text("backend_host", {
      description: "Host header and SNI towards the origin.",
      default: BACKEND_DEFAULTS.host,
    }),
  ),
  connect_timeout_s: timeout({
    description: "Until a connection is made, TLS included.",
    default: BACKEND_DEFAULTS.connect_timeout_s,
  }),
  response_timeout_s: timeout({
    description: "Until the head of the answer has come.",
    default: BACKEND_DEFAULTS.response_timeout_s,
  }),
  idle_timeout_s: timeout({
    description: "Between two pieces of the body.",
    default: BACKEND_DEFAULTS.idle_timeout_s,
  }),
  retries: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 3,
      description: "Of idempotent requests without a body only.",
      default: BACKEND_DEFAULTS.retries,
    }),
  ),
  health: Type.Optional(
    Type.Union([HealthSchema, Type.Null()], {
      description: "Active check: an origin that fails it twice is asked last until it succeeds.",
      default: BACKEND_DEFAULTS.health,
    }),
  ),
});
