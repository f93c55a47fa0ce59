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
      description: "Names of parameters that are left out; `*` stands for any run of characters.",
    }),
    keep: listSchema(text("query_name"), 100, "", {
      description: "Names of parameters that are kept; all others are left out.",
    }),
  },
  {
    description:
      "Which query parameters tell entries apart; the others are in neither the cache key nor the index.",
    "x-check": "query",
  },
);

const CookiesSchema = section(
  {
    ignore: listSchema(text("cookie_name"), 100, "", {
      description:
        'Names of cookies; `*` stands for any run of characters, `["*"]` for all cookies. The list in caching.md is always ignored as well.',
    }),
  },
  {
    description:
      "Cookies that do not change the answer; the origin is asked without them. Under `ttl_s` a request with any other cookie is passed on.",
  },
);

export const cacheProperties = {
  ttl_s: seconds({
    description:
      "How long an answer that may be stored is fresh, whatever lifetime the origin names. Without this key the headers of the origin decide.",
  }),
  bypass: flag({
    description:
      "Matching requests are never answered from the cache, and their answers are not stored.",
    default: CACHE_DEFAULTS.bypass,
  }),
  query: Type.Optional(QuerySchema),
  cookies: Type.Optional(CookiesSchema),
  stale_while_revalidate_s: seconds({
    description: "How long a stale answer may be served while a fresh one is fetched.",
    default: CACHE_DEFAULTS.stale_while_revalidate_s,
  }),
  stale_if_error_s: seconds({
    description: "How long a stale answer may be served while the origin fails.",
    default: CACHE_DEFAULTS.stale_if_error_s,
  }),
  ignore_set_cookie: flag({
    description: "Removes Set-Cookie from the answer and stores it.",
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
    description: "A path, or an http or https URL; it is used as written.",
  }),
  status: Type.Enum([301, 302, 307, 308], {
    description: "Browsers remember 301 and 308. 307 and 308 keep the method of the request.",
  }),
});

export const HeadersSchema = section(
  {
    set: Type.Optional(
      Type.Record(Type.String(), text("header_value", { maxLength: 4096 }), {
        "x-key-check": "header_name",
        maxProperties: 100,
        description: "Names and values. A header of the origin with the same name is replaced.",
      }),
    ),
    remove: listSchema(text("header_name"), 100, "", {
      description: "Names of headers, in upper or lower case.",
    }),
  },
  {
    description: "Headers that are set on or removed from every answer.",
    default: SITE_DEFAULTS.headers,
    "x-check": "headers",
  },
);

const HealthSchema = section({
  path: text("origin_path", {
    description: "The path that is requested with GET, under the name of the domain.",
  }),
  interval_s: Type.Integer({
    minimum: 1,
    maximum: timeoutMaxS,
    description: "The time from one check to the next.",
  }),
  timeout_s: Type.Number({
    minimum: 0.1,
    maximum: timeoutMaxS,
    description: "An answer that takes longer counts as a failure.",
  }),
  statuses: Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), {
    minItems: 1,
    maxItems: 100,
    "x-unique-by": "",
    description: "The status codes of a healthy origin. Redirects are not followed.",
  }),
});

export const BackendSchema = section({
  urls: Type.Array(text("backend_url", { maxLength: 2048 }), {
    minItems: 1,
    maxItems: 16,
    "x-unique-by": "",
    description: "http or https URLs of the origin, tried in order of health.",
  }),
  host: Type.Optional(
    text("backend_host", {
      description: "The Host header and TLS server name that the origin sees.",
      default: BACKEND_DEFAULTS.host,
    }),
  ),
  connect_timeout_s: timeout({
    description: "Limit for making a connection, TLS included.",
    default: BACKEND_DEFAULTS.connect_timeout_s,
  }),
  response_timeout_s: timeout({
    description: "Limit until the head of the answer has arrived.",
    default: BACKEND_DEFAULTS.response_timeout_s,
  }),
  idle_timeout_s: timeout({
    description: "Limit between two pieces of the body.",
    default: BACKEND_DEFAULTS.idle_timeout_s,
  }),
  retries: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 3,
      description: "How often a request is repeated. Only idempotent requests without a body are.",
      default: BACKEND_DEFAULTS.retries,
    }),
  ),
  health: Type.Optional(
    Type.Union([HealthSchema, Type.Null()], {
      description:
        "An active check. An origin that fails it twice in a row is asked last until it succeeds.",
      default: BACKEND_DEFAULTS.health,
    }),
  ),
});
