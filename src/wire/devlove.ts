// `devlove/1`: the document that configures one main domain and its sub-domains. The schema is the whole of version 1.
//
// Keywords beside JSON Schema's, read by devlove-validate.ts: `x-check` names a check of the value, `x-key-check` one of the names in an
// object with free names, `x-unique-by` the part in which the elements of a list differ ("" for the element itself).
// A key is added here (with its default in core/serving/effective-devlove.ts) and nowhere else; one that is not served yet stands in devlove-keys.ts too.

import { Type } from "typebox";
import type { Static } from "typebox";
import { SITE_DEFAULTS } from "../core/serving/effective-devlove.ts";
import {
  BackendSchema,
  CacheRuleSchema,
  HeadersSchema,
  RedirectSchema,
  cacheProperties,
  flag,
  listSchema,
  seconds,
  section,
  text,
} from "./devlove-sections.ts";

export const devloveSchemaId = "devlove/1";
/** UTF-8. */
export const devloveBytesMax = 1024 * 1024;
const bodyBytesMax = 1024 ** 4; // 1 TiB.
/** Of one document; judging so many takes a tenth of a second. */
const domainsMax = 10_000;

function nullablePath(description: string) {
  return Type.Optional(
    Type.Union([text("file_path"), Type.Null()], { description, default: null }),
  );
}

const DomainSchema = section({
  views_dir: Type.Optional(
    text("views_dir", {
      description: "The site root inside the viewset; files are indexed relative to it.",
      default: SITE_DEFAULTS.views_dir,
    }),
  ),
  index: listSchema(text("index_name"), 16, "", {
    description: "What answers for a directory; `/dir` redirects to `/dir/`.",
    default: SITE_DEFAULTS.index,
  }),
  single_page: nullablePath("File answering GET for paths that match no file and no backend."),
  not_found: nullablePath("File for 404."),
  redirects: listSchema(RedirectSchema, 5_000, "from", {
    description: "First match wins.",
    default: SITE_DEFAULTS.redirects,
    "x-check": "redirects",
  }),
  headers: Type.Optional(HeadersSchema),
  compression: flag({
    description: "br, zstd, gzip variants of text.",
    default: SITE_DEFAULTS.compression,
  }),
  backend: Type.Optional(
    Type.Union([BackendSchema, Type.Null()], {
      description: "The origin; without one, what is no file is 404.",
      default: SITE_DEFAULTS.backend,
    }),
  ),
  cache: Type.Optional(
    section(
      {
        rules: listSchema(CacheRuleSchema, 200, "path", {
          description: "First match wins.",
          default: SITE_DEFAULTS.cache.rules,
        }),
        default: Type.Optional(
          section(cacheProperties, {
            description: "For what no rule matches.",
            default: {},
            "x-check": "cache",
          }),
        ),
      },
      { description: "What is cached of the origin's answers, and for how long." },
    ),
  ),
  static: Type.Optional(
    section(
      {
        max_age_s: seconds({
          description: "Cache-Control of static files towards visitors; always with ETag.",
          default: SITE_DEFAULTS.static.max_age_s,
        }),
      },
      { description: "Files of the viewset." },
    ),
  ),
  bots: Type.Optional(
    section(
      {
        mode: Type.Optional(
          Type.Enum(["enforce", "monitor"], {
            description: "`monitor` lets through and counts.",
            default: SITE_DEFAULTS.bots.mode,
          }),
        ),
      },
      { description: "What is done with bots." },
    ),
  ),
  images: Type.Optional(
    section(
      {
        optimize: flag({
          description: "WebP and AVIF variants of images.",
          default: SITE_DEFAULTS.images.optimize,
        }),
        variants_per_day_max: Type.Optional(
          Type.Integer({
            minimum: 0,
            maximum: 1_000_000_000,
            description: "Above it originals are served and the event is raised.",
            default: SITE_DEFAULTS.images.variants_per_day_max,
          }),
        ),
      },
      { description: "Variants of images." },
    ),
  ),
  tls: Type.Optional(
    section(
      {
        redirect_http: flag({
          description: "308 to https.",
          default: SITE_DEFAULTS.tls.redirect_http,
        }),
        hsts_s: seconds({
          description: "Strict-Transport-Security.",
          default: SITE_DEFAULTS.tls.hsts_s,
        }),
      },
      { description: "What is said to visitors about HTTPS." },
    ),
  ),
  limits: Type.Optional(
    section(
      {
        body_bytes_max: Type.Optional(
          Type.Integer({
            minimum: 0,
            maximum: bodyBytesMax,
            description: "413 above.",
            default: SITE_DEFAULTS.limits.body_bytes_max,
          }),
        ),
      },
      { description: "Limits of requests." },
    ),
  ),
});

export const DevloveSchema = section({
  domains: Type.Record(Type.String(), DomainSchema, {
    "x-key-check": "domain",
    maxProperties: domainsMax,
    description:
      "The main domain and any of its sub-domains. One that is not named has the main domain's.",
  }),
});

export type Devlove = Static<typeof DevloveSchema>;
