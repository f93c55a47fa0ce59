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
      description:
        "The folder of the viewset that is the root of the site. Files are indexed by their path below it.",
      default: SITE_DEFAULTS.views_dir,
    }),
  ),
  index: listSchema(text("index_name"), 16, "", {
    description: "Names of files that answer for a directory. `/dir` redirects to `/dir/`.",
    default: SITE_DEFAULTS.index,
  }),
  single_page: nullablePath(
    "A file that answers GET for every path that is no file, where there is no backend.",
  ),
  not_found: nullablePath("The file that is sent with 404."),
  redirects: listSchema(RedirectSchema, 5_000, "from", {
    description: "The first match decides.",
    default: SITE_DEFAULTS.redirects,
    "x-check": "redirects",
  }),
  headers: Type.Optional(HeadersSchema),
  compression: flag({
    description: "Whether text is sent compressed, as br, zstd or gzip.",
    default: SITE_DEFAULTS.compression,
  }),
  backend: Type.Optional(
    Type.Union([BackendSchema, Type.Null()], {
      description: "The origin. Without one, a path that is no file is 404.",
      default: SITE_DEFAULTS.backend,
    }),
  ),
  cache: Type.Optional(
    section(
      {
        rules: listSchema(CacheRuleSchema, 200, "path", {
          description: "The first match decides.",
          default: SITE_DEFAULTS.cache.rules,
        }),
        default: Type.Optional(
          section(cacheProperties, {
            description: "The rule for paths that no other rule matches.",
            default: {},
            "x-check": "cache",
          }),
        ),
      },
      { description: "Which answers of the origin are cached, and for how long." },
    ),
  ),
  static: Type.Optional(
    section(
      {
        max_age_s: seconds({
          description:
            "`max-age` in the Cache-Control of static files, for browsers. They always have an ETag.",
          default: SITE_DEFAULTS.static.max_age_s,
        }),
      },
      { description: "How files of the viewset are served." },
    ),
  ),
  bots: Type.Optional(
    section(
      {
        mode: Type.Optional(
          Type.Enum(["enforce", "monitor"], {
            description: "`monitor` lets blocked requests through and counts them.",
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
          description: "Whether images are sent as WebP and AVIF variants.",
          default: SITE_DEFAULTS.images.optimize,
        }),
        variants_per_day_max: Type.Optional(
          Type.Integer({
            minimum: 0,
            maximum: 1_000_000_000,
            description:
              "How many variants are made in a day. Above that, originals are served and an event is raised.",
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
          description: "Whether plain HTTP is redirected to HTTPS, with 308.",
          default: SITE_DEFAULTS.tls.redirect_http,
        }),
        hsts_s: seconds({
          description:
            "`max-age` of Strict-Transport-Security on answers over HTTPS; 0 adds nothing.",
          default: SITE_DEFAULTS.tls.hsts_s,
        }),
      },
      { description: "What visitors are told about HTTPS." },
    ),
  ),
  limits: Type.Optional(
    section(
      {
        body_bytes_max: Type.Optional(
          Type.Integer({
            minimum: 0,
            maximum: bodyBytesMax,
            description: "The largest body of a request. A larger one is answered with 413.",
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
      "The main domain and any of its sub-domains. A sub-domain that is not named has the configuration of the main domain.",
  }),
});

export type Devlove = Static<typeof DevloveSchema>;
