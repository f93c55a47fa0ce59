// The part of `devlove/1` that is about the cache; devlove.ts says what a schema states of each key.

import { Type } from "typebox";
import {
  flag,
  headersSchema,
  listSchema,
  methodsSchema,
  orUnset,
  lifetimeS,
  section,
  text,
  type KeyOptions,
} from "./devlove-parts.ts";

const QuerySchema = section(
  {
    ignore: listSchema(text("query_name"), 100, "", {
      description: "Names of parameters that are left out; `*` stands for any run of characters.",
      examples: [["utm_*", "fbclid"]],
    }),
    keep: listSchema(text("query_name"), 100, "", {
      description: "Names of parameters that are kept; all others are left out.",
      examples: [["id", "page"]],
    }),
    sort: flag({
      description:
        "Whether the order of parameters with different names tells no entries apart. The origin gets them as they were sent.",
      default: false,
      examples: [true],
    }),
  },
  {
    description:
      "Which query parameters tell entries apart; the others are in neither the cache key nor the index.",
    default: { ignore: [], sort: false },
    examples: [{ ignore: ["utm_*"] }, { keep: ["id", "page"], sort: true }],
    "x-check": "query",
  },
);

function cookies(options: KeyOptions) {
  return listSchema(text("cookie_pattern"), 100, "", { default: [], ...options });
}

const CookiesSchema = section(
  {
    bypass: cookies({
      description:
        "Cookies with which a request is passed on: it is not answered from the cache, and its answer is not stored.",
      examples: [["session", "role=admin"]],
    }),
    vary: cookies({
      description:
        "Cookies on which the answer depends: the origin is told them and no others, and each value has an entry of its own.",
      examples: [["lang", "currency"]],
    }),
    ignore: cookies({
      description:
        'Cookies that are taken for not there; `["*"]` is all. The list in caching.md is always ignored as well.',
      examples: [["ab_*", "theme=light"]],
    }),
  },
  {
    description:
      "What the cookies of a request mean, asked in this order. Each item is a name, or a name and a value (`lang=de`); `*` stands for any run of characters. Under `ttl_s` or `vary` a request with any other cookie is passed on.",
    "x-check": "cookies",
  },
);

const AnswerHeadersSchema = headersSchema(
  "header_name",
  {
    set: {
      description:
        "Names and values. A header of the origin with the same name is replaced, and `headers.set` of the domain has the last word.",
      examples: [{ "X-Robots-Tag": "noindex" }],
    },
    remove: {
      description: "Names of headers, in upper or lower case.",
      examples: [["X-Debug-Token"]],
    },
  },
  {
    description:
      "Set on or removed from every answer under the rule when it is sent. What is stored stays as it came.",
    examples: [{ set: { "X-Robots-Tag": "noindex" }, remove: ["X-Debug-Token"] }],
  },
);

const RequestHeadersSchema = headersSchema(
  "request_header",
  {
    set: {
      description: "Names and values. What the visitor sends under the same name is left out.",
      examples: [{ "X-Origin-Key": "5d1f" }],
    },
    remove: {
      description: "Names of headers, in upper or lower case.",
      examples: [["X-Requested-With", "User-Agent"]],
    },
  },
  {
    description:
      "Set on or removed from every request that the origin is asked under the rule. These headers tell no answers apart any more. What was stored while the origin was told others is not used.",
    examples: [{ set: { "X-Origin-Key": "5d1f" }, remove: ["User-Agent"] }],
  },
);

const RuleHeadersSchema = section(
  {
    response: Type.Optional(AnswerHeadersSchema),
    request: Type.Optional(RequestHeadersSchema),
  },
  {
    description: "Headers of the answers, and of the requests to the origin, under the rule.",
    examples: [{ response: { set: { "X-Robots-Tag": "noindex" } } }],
  },
);

/** The keys of a cache rule, and of `cache.default`. */
export const cacheKeys = {
  ttl_s: orUnset(
    lifetimeS({
      description:
        "How long an answer that may be stored is fresh, whatever lifetime the origin names. Without this key the headers of the origin decide.",
      examples: [3_600],
    }),
  ),
  negative_ttl_s: orUnset(
    lifetimeS({
      description:
        "The same for 404 and 410. Without this key they are as fresh as the origin says.",
      examples: [10],
    }),
  ),
  browser_ttl_s: orUnset(
    lifetimeS({
      description:
        "How long browsers may keep an answer that the cache shares, whatever lifetime the origin names to them. Without this key they are told what the origin says.",
      examples: [60],
    }),
  ),
  vary: listSchema(text("vary_header"), 10, "", {
    description:
      "Request headers on which the answer depends, whether or not the origin says so in `Vary`: each value has an entry of its own.",
    default: [],
    examples: [["Accept-Language"]],
  }),
  override: listSchema(Type.Enum(["no-cache", "max-age"]), 2, "", {
    description:
      "What `ttl_s` and `negative_ttl_s` override as well: `no-cache`, and `max-age=0` beside `must-revalidate`. `private`, `no-store` and cookies are never overridden.",
    default: [],
    examples: [["no-cache", "max-age"]],
  }),
  bypass: flag({
    description:
      "Matching requests are never answered from the cache, and their answers are not stored.",
    default: false,
  }),
  query: Type.Optional(QuerySchema),
  cookies: Type.Optional(CookiesSchema),
  stale_while_revalidate_s: lifetimeS({
    description: "How long a stale answer may be served while a fresh one is fetched.",
    default: 0,
    examples: [30],
  }),
  stale_if_error_s: lifetimeS({
    description: "How long a stale answer may be served while the origin fails.",
    default: 0,
    examples: [86_400],
  }),
  ignore_set_cookie: flag({
    description: "Removes Set-Cookie from the answer and stores it.",
    default: false,
  }),
  headers: Type.Optional(RuleHeadersSchema),
};

export const MatchSchema = section(
  {
    method: methodsSchema({
      description: "Methods, of which any is enough. GET includes HEAD.",
      examples: [["GET"]],
    }),
    header: Type.Optional(
      Type.Record(Type.String(), text("match_value"), {
        "x-key-check": "match_header",
        maxProperties: 10,
        description:
          'Request headers that must all be there, with patterns for their values; `*` stands for any run of characters, and `"*"` for any value.',
        examples: [{ "X-Requested-With": "*", "X-App": "shop/2.*" }],
      }),
    ),
    query: listSchema(text("match_query"), 100, "", {
      description:
        "Parameters of the query, as the visitor sends it, of which any is enough: a name, or a name and a value; `*` stands for any run of characters.",
      examples: [["preview", "debug=1", "admin_*"]],
    }),
    media_type: listSchema(text("media_type"), 100, "", {
      description:
        "Media types of the answer, of which any is enough: `text/css`, or `image/*` for all of one type. The rule says nothing of requests then: `bypass`, `query`, `cookies`, `vary` and `headers.request` are those of the next rule that applies.",
      examples: [["image/*", "text/css"]],
    }),
  },
  {
    description:
      "What a request, or its answer, must have beside the path for the rule to apply. All kinds that are given must hold.",
    examples: [{ query: ["preview"] }],
    "x-check": "match",
  },
);

const CacheRuleSchema = section(
  {
    path: text("path_pattern", {
      description: "`*` stands for anything within a segment, `**` for anything at all.",
      examples: ["/img/**", "/api/**"],
    }),
    match: orUnset(Type.Optional(MatchSchema)),
    ...cacheKeys,
  },
  { "x-check": "cache" },
);

function pagesOf(what: string, example: string) {
  return listSchema(text("path_pattern"), 20, "", {
    description: `Paths of the ${what}, with everything below them.`,
    default: [example],
    examples: [[example]],
  });
}

export const PresetSchema = section(
  {
    name: Type.Enum(["wordpress", "woocommerce", "drupal"], {
      description: "The application. `woocommerce` includes what `wordpress` says.",
      examples: ["wordpress"],
    }),
    base: Type.Optional(
      text("preset_base", {
        description: "The path below which the application lies, without a slash at its end.",
        default: "",
        examples: ["/blog"],
      }),
    ),
    ttl_s: orUnset(
      lifetimeS({
        description:
          "How long pages are fresh. Without this key 300 for WordPress, which names no lifetime, and what Drupal says for Drupal.",
        examples: [600],
      }),
    ),
    pages: orUnset(
      Type.Optional(
        section(
          {
            cart: pagesOf("cart", "/cart"),
            checkout: pagesOf("checkout", "/checkout"),
            account: pagesOf("account", "/my-account"),
          },
          {
            description: "Where the pages of a shop are that are never shared (woocommerce).",
            examples: [{ cart: ["/warenkorb"], checkout: ["/kasse"], account: ["/mein-konto"] }],
          },
        ),
      ),
    ),
    cookies: orUnset(
      Type.Optional(
        section(
          {
            bypass: cookies({
              description: "Cookies of plugins with which a request is passed on.",
              examples: [["edd_items_in_cart"]],
            }),
            vary: cookies({
              description: "Cookies of plugins that make pages by them.",
              examples: [["wmc_current_currency"]],
            }),
          },
          {
            description: "Cookies that count beside those of the application.",
            examples: [{ vary: ["wmc_current_currency"] }],
          },
        ),
      ),
    ),
  },
  { "x-check": "preset" },
);

export const CacheSchema = section(
  {
    paused_until: orUnset(
      Type.Optional(
        text("pause_end", {
          maxLength: 64,
          description:
            "A time (RFC 3339), a day ahead at most, until which every request is passed on. What is stored is kept, and used again afterwards.",
          examples: ["2026-11-25T18:00:00Z"],
        }),
      ),
    ),
    rules: Type.Optional(
      Type.Array(CacheRuleSchema, {
        maxItems: 200,
        description: "The first match decides.",
        default: [],
        examples: [[{ path: "/img/**", ttl_s: 86_400 }]],
        "x-check": "cache_rules",
      }),
    ),
    presets: listSchema(PresetSchema, 4, "base", {
      description: "Rules for well-known applications, asked after `rules`. caching.md lists them.",
      default: [],
      examples: [[{ name: "wordpress" }]],
    }),
    default: Type.Optional(
      section(cacheKeys, {
        description: "The rule for paths that no other rule matches.",
        examples: [{ query: { ignore: ["utm_*"] } }],
        "x-check": "cache",
      }),
    ),
  },
  { description: "Which answers of the origin are cached, and for how long." },
);
