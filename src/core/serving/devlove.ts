// `devlove/1`: the document that configures one main domain and its sub-domains. This schema is the whole of
// version 1 and its only source, with devlove-cache.ts for the cache and devlove-limits.ts for limits.
//
// Each key states its type and range, its default, its meaning and an example. Derived from that are the
// types and defaults in force (effective-devlove.ts), the validator, the key table and the JSON Schema for
// editors (wire/devlove-*.ts), docs/devlove.md and config/devlove-1.schema.json (`npm run generate`).
// docs/internals/hacking.md shows how to add a key.

import { Type } from "typebox";
import type { Static } from "typebox";
import { directoryDefault } from "../acme/directory-url.ts";
import { imageFormats, imageWidthsMax } from "../images/image-form.ts";
import { CacheSchema } from "./devlove-cache.ts";
import { LimitsSchema } from "./devlove-limits.ts";
import {
  flag,
  headersSchema,
  listSchema,
  lifetimeS,
  section,
  text,
  timeout,
  timeoutMaxS,
} from "./devlove-parts.ts";

export const devloveSchemaId = "devlove/1";
/** The most bytes of one document, as UTF-8. */
export const devloveBytesMax = 1024 * 1024;
/** The most domains of one document; judging so many takes a tenth of a second. */
const domainsMax = 10_000;

const RedirectSchema = section({
  from: text("path_pattern", { description: "A path pattern.", examples: ["/old", "/old/**"] }),
  to: text("redirect_target", {
    maxLength: 2048,
    description: "A path, or an http or https URL; it is used as written.",
    examples: ["/new/", "https://www.example.com/new/"],
  }),
  status: Type.Enum([301, 302, 307, 308], {
    description: "Browsers remember 301 and 308. 307 and 308 keep the method of the request.",
  }),
});

const HeadersSchema = headersSchema(
  "header_name",
  {
    set: {
      description: "Names and values. A header of the origin with the same name is replaced.",
      examples: [{ "X-Frame-KeyOptions": "DENY" }],
    },
    remove: {
      description: "Names of headers, in upper or lower case.",
      examples: [["X-Powered-By", "Server"]],
    },
  },
  { description: "Headers that are set on or removed from every answer." },
);

const HealthSchema = section({
  path: text("origin_path", {
    description: "The path that is requested with GET, under the name of the domain.",
    examples: ["/health"],
  }),
  interval_s: Type.Integer({
    minimum: 1,
    maximum: timeoutMaxS,
    description: "The time from one check to the next.",
    examples: [10],
  }),
  timeout_s: Type.Number({
    minimum: 0.1,
    maximum: timeoutMaxS,
    description: "An answer that takes longer counts as a failure.",
    examples: [2],
  }),
  statuses: Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), {
    minItems: 1,
    maxItems: 100,
    "x-unique-by": "",
    description: "The status codes of a healthy origin. Redirects are not followed.",
    examples: [[200, 204]],
  }),
});

const BackendSchema = section({
  urls: Type.Array(text("backend_url", { maxLength: 2048 }), {
    minItems: 1,
    maxItems: 16,
    "x-unique-by": "",
    description: "http or https URLs of the origin, tried in order of health.",
    examples: [["http://127.0.0.1:8081"], ["https://a.example.net", "https://b.example.net"]],
  }),
  host: Type.Optional(
    text("backend_host", {
      description: "The Host header and TLS server name that the origin sees.",
      default: "preserve",
      examples: ["preserve", "origin.example.net"],
    }),
  ),
  connect_timeout_s: timeout({
    description: "Limit for making a connection, TLS included.",
    default: 5,
  }),
  response_timeout_s: timeout({
    description: "Limit until the head of the answer has arrived.",
    default: 30,
    examples: [60],
  }),
  idle_timeout_s: timeout({ description: "Limit between two pieces of the body.", default: 60 }),
  retries: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 3,
      description: "How often a request is repeated. Only idempotent requests without a body are.",
      default: 1,
    }),
  ),
  stream_request_body: flag({
    description:
      "Whether the body of a request is passed on while it comes. Otherwise it is taken in first, so that slow visitors hold no connection to the origin.",
    default: false,
    examples: [true],
  }),
  health: Type.Optional(
    Type.Union([HealthSchema, Type.Null()], {
      description:
        "An active check. An origin that fails it twice in a row is asked last until it succeeds.",
      default: null,
      examples: [{ path: "/health", interval_s: 10, timeout_s: 2, statuses: [200] }],
    }),
  ),
});

const AcmeSchema = section({
  email: text("mail_address", {
    maxLength: 254,
    description:
      "The mail address of the account at the directory, which may write there when something is wrong. Naming it here agrees to the directory's terms of service.",
    examples: ["certificates@example.com"],
  }),
  directory: Type.Optional(
    text("acme_directory", {
      maxLength: 2048,
      description: "The https URL of the directory that issues the certificate.",
      default: directoryDefault,
      examples: ["https://acme-staging-v02.api.letsencrypt.org/directory"],
    }),
  ),
});

function nullablePath(description: string, example: string) {
  return Type.Optional(
    Type.Union([text("file_path"), Type.Null()], {
      description,
      default: null,
      examples: [example],
    }),
  );
}

export const DomainSchema = section({
  views_dir: Type.Optional(
    text("views_dir", {
      description:
        "The folder of the viewset that is the root of the site. Files are indexed by their path below it.",
      default: ".",
      examples: ["public", "."],
    }),
  ),
  index: listSchema(text("index_name"), 16, "", {
    description: "Names of files that answer for a directory. `/dir` redirects to `/dir/`.",
    default: ["index.html"],
    examples: [["index.html", "index.htm"]],
  }),
  single_page: nullablePath(
    "A file that answers GET for every path that is no file, where there is no backend.",
    "index.html",
  ),
  not_found: nullablePath("The file that is sent with 404.", "404.html"),
  redirects: listSchema(RedirectSchema, 5_000, "from", {
    description: "The first match decides.",
    default: [],
    examples: [[{ from: "/old/**", to: "/new/", status: 301 }]],
    "x-check": "redirects",
  }),
  headers: Type.Optional(HeadersSchema),
  compression: flag({
    description: "Whether text is sent compressed, as br, zstd or gzip.",
    default: true,
  }),
  backend: Type.Optional(
    Type.Union([BackendSchema, Type.Null()], {
      description: "The origin. Without one, a path that is no file is 404.",
      default: null,
      examples: [{ urls: ["http://127.0.0.1:8081"] }],
    }),
  ),
  cache: Type.Optional(CacheSchema),
  static: Type.Optional(
    section(
      {
        max_age_s: lifetimeS({
          description:
            "`max-age` in the Cache-Control of static files, for browsers. They always have an ETag.",
          default: 0,
          examples: [3_600],
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
            default: "enforce",
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
          description: "Whether images are sent as AVIF and WebP variants, and in other widths.",
          default: false,
          examples: [true],
        }),
        formats: listSchema(Type.Enum([...imageFormats]), imageFormats.length, "", {
          description:
            "The formats that variants are made in. A visitor gets one only if `Accept` names it.",
          default: [...imageFormats],
          examples: [["webp"]],
        }),
        quality: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: 100,
            description: "The quality with which variants are made. More takes more bytes.",
            default: 80,
            examples: [70],
          }),
        ),
        widths: listSchema(Type.Integer({ minimum: 16, maximum: 4_096 }), imageWidthsMax, "", {
          description:
            "Widths in pixels, which `?width=` of a URL may name. Other values go to the origin as any parameter does. No image is widened.",
          default: [],
          examples: [[320, 640, 1_280]],
        }),
        variants_per_day_max: Type.Optional(
          Type.Integer({
            minimum: 0,
            maximum: 1_000_000_000,
            description:
              "How many variants an agent makes for the main domain in a day (UTC). Above that, originals are served and an event is raised.",
            default: 10_000,
            examples: [50_000],
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
          default: false,
        }),
        hsts_s: lifetimeS({
          description:
            "`max-age` of Strict-Transport-Security on answers over HTTPS; 0 adds nothing.",
          default: 0,
        }),
        acme: Type.Optional(
          Type.Union([AcmeSchema, Type.Null()], {
            description:
              "Central orders and renews the host's certificate by ACME (RFC 8555) with HTTP-01. Without it, certificates are uploaded.",
            default: null,
            examples: [{ email: "certificates@example.com" }],
          }),
        ),
      },
      { description: "HTTPS: what visitors are told about it, and who orders the certificate." },
    ),
  ),
  limits: Type.Optional(LimitsSchema),
  purge: Type.Optional(
    section(
      {
        addresses: listSchema(text("address_range"), 100, "", {
          description:
            "Addresses and CIDR ranges from which purge requests are taken. The address is that of the connection, or what a trusted proxy says.",
          default: [],
          examples: [["192.0.2.10", "2001:db8:1::/48"]],
        }),
        keys: listSchema(text("purge_key"), 20, "", {
          description:
            "Keys with which purge requests are taken from anywhere. Each stands here as the SHA-256 of the key, in 64 lower-case hexadecimal digits.",
          default: [],
          examples: [["2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"]],
        }),
      },
      {
        description:
          "Who may clear the cache with the purge requests of content management systems (`PURGE`, `BAN`, `URIBAN`). Nobody may by default.",
      },
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

/** A document that the validator accepted. */
export type Devlove = AsWritten<Static<typeof DevloveSchema>>;

/** The document as it was written, read only. */
export type AsWritten<T> = T extends readonly (infer Item)[]
  ? readonly AsWritten<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: AsWritten<T[Key]> }
    : T;
