// The schema of devlove/1 and its key table: complete, with the defaults that are in force, and never laxer than the walk over it.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { validateDevlove } from "../../src/wire/devlove-validate.ts";
import { Value } from "typebox/value";
import { SITE_DEFAULTS } from "../../src/core/serving/effective-devlove.ts";
import { devloveKeys } from "../support/devlove-key-table.ts";
import { DevloveSchema } from "../../src/core/serving/devlove.ts";
import { walkShape } from "../../src/wire/shape-errors.ts";
import type { ShapeError, ShapeSchema } from "../../src/wire/shape-errors.ts";

const keys = devloveKeys();

const ruleKeys =
  "ttl_s negative_ttl_s browser_ttl_s vary override bypass query query.ignore query.keep query.sort cookies cookies.bypass cookies.vary cookies.ignore stale_while_revalidate_s stale_if_error_s ignore_set_cookie headers headers.response headers.response.set headers.response.remove headers.request headers.request.set headers.request.remove";

test("the key table is the whole of version 1", () => {
  const below = (prefix: string, names: string): string[] =>
    names.split(" ").map((name) => `${prefix}.${name}`);
  const timeouts = "connect_timeout_s response_timeout_s idle_timeout_s";
  const expected = [
    "views_dir index single_page not_found redirects".split(" "),
    below("redirects", "from to status"),
    "headers headers.set headers.remove compression backend".split(" "),
    below("backend", `urls host ${timeouts} retries stream_request_body health`),
    below("backend.health", "path interval_s timeout_s statuses"),
    "cache cache.paused_until cache.rules cache.rules.path cache.rules.match".split(" "),
    below("cache.rules.match", "method header query media_type"),
    below("cache.rules", ruleKeys),
    "cache.presets cache.presets.name cache.presets.base cache.presets.ttl_s".split(" "),
    "cache.presets.pages".split(" "),
    below("cache.presets.pages", "cart checkout account"),
    ["cache.presets.cookies"],
    below("cache.presets.cookies", "bypass vary"),
    ["cache.default"],
    below("cache.default", ruleKeys),
    "static static.max_age_s bots bots.mode".split(" "),
    ["images"],
    below("images", "optimize formats quality widths variants_per_day_max"),
    "tls tls.redirect_http tls.hsts_s tls.acme tls.acme.email tls.acme.directory".split(" "),
    "limits limits.body_bytes_max".split(" "),
    ["limits.requests"],
    below("limits.requests", "path methods rate per_s burst mode"),
    ["limits.bytes"],
    below("limits.bytes", "path rate_bytes_s after_bytes"),
    "purge purge.addresses purge.keys".split(" "),
  ];
  expect(keys.map((row) => row.key)).toEqual(expected.flat());
});

test.each([
  ["views_dir", "string", "."],
  ["index", "list of string", ["index.html"]],
  ["single_page", "string or null", null],
  ["redirects", "list of object", []],
  ["redirects.status", "301 | 302 | 307 | 308", undefined],
  ["compression", "boolean", true],
  ["backend", "object or null", null],
  ["backend.host", "string", "preserve"],
  ["backend.connect_timeout_s", "number 0.1 to 3600", 5],
  ["backend.response_timeout_s", "number 0.1 to 3600", 30],
  ["backend.idle_timeout_s", "number 0.1 to 3600", 60],
  ["backend.retries", "integer 0 to 3", 1],
  ["backend.health", "object or null", null],
  ["static.max_age_s", "integer 0 to 315360000", 0],
  ["bots.mode", "enforce | monitor", "enforce"],
  ["images.optimize", "boolean", false],
  ["images.formats", "list of avif | webp", ["avif", "webp"]],
  ["images.quality", "integer 1 to 100", 80],
  ["images.widths", "list of integer 16 to 4096", []],
  ["images.variants_per_day_max", "integer 0 to 1000000000", 10_000],
  ["tls.redirect_http", "boolean", false],
  ["tls.hsts_s", "integer 0 to 315360000", 0],
  ["tls.acme", "object or null", null],
  ["tls.acme.email", "string", undefined],
  ["tls.acme.directory", "string", "https://acme-v02.api.letsencrypt.org/directory"],
  ["purge.addresses", "list of string", []],
  ["purge.keys", "list of string", []],
  ["limits.body_bytes_max", "integer 0 to 1099511627776", 104_857_600],
  ["limits.requests", "list of object", []],
  ["limits.requests.rate", "integer 1 to 100000", undefined],
  ["limits.requests.per_s", "integer 1 to 86400", 1],
  ["limits.requests.burst", "integer 1 to 10000", undefined],
  ["limits.requests.mode", "enforce | monitor", "enforce"],
  ["limits.bytes.rate_bytes_s", "integer 1024 to 1073741824", undefined],
  ["limits.bytes.after_bytes", "integer 0 to 1099511627776", 0],
])("%s: %s, %j", (key, type, fallback) => {
  expect(keys.find((row) => row.key === key)).toMatchObject({ type, default: fallback });
});

test("every key of a site's configuration is in the table", () => {
  const known = keys.map((row) => row.key);
  expect(known).toEqual(expect.arrayContaining(Object.keys(SITE_DEFAULTS)));
});

function errorsOf(value: unknown): readonly ShapeError[] {
  const errors: ShapeError[] = [];
  walkShape(DevloveSchema, value, { error: (error) => errors.push(error), found: () => undefined });
  return errors;
}

const odd = fc.oneof(
  fc.constantFrom(null, true, false, "", "x", 0, 1, -1, 1.5, 301, 1e300, [], {}),
  fc.jsonValue({ maxDepth: 1 }),
);

/** Values that follow the schema, here and there something else. */
function nearly(schema: ShapeSchema): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 30, arbitrary: following(schema) }, { weight: 1, arbitrary: odd });
}

function following(schema: ShapeSchema): fc.Arbitrary<unknown> {
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(nearly));
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const { minimum = 0, maximum = 5, minItems = 0, items = {} } = schema;
  switch (schema.type) {
    case "object": {
      const free = Object.values(schema.patternProperties ?? {}).map((value) =>
        fc.dictionary(fc.constantFrom("a", "b", "__proto__"), nearly(value)),
      );
      if (free.length > 0) return fc.oneof(...free);
      const members = Object.entries(schema.properties ?? {}).map(
        ([key, value]): [string, fc.Arbitrary<unknown>] => [key, nearly(value)],
      );
      return fc.record(Object.fromEntries(members), { requiredKeys: [...(schema.required ?? [])] });
    }
    case "array":
      return fc.array(nearly(items), { minLength: minItems, maxLength: minItems + 2 });
    case "integer":
      return fc.constantFrom(
        Math.ceil(minimum),
        maximum,
        Math.ceil(minimum) - 1,
        maximum + 1,
        Math.ceil(minimum) + 1,
      );
    case "number":
      return fc.constantFrom(minimum, maximum, minimum / 2, maximum + 0.1, 1.25);
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    default:
      return fc.string({ maxLength: 3 });
  }
}

test("the walk finds errors exactly where TypeBox's check fails", () => {
  const seen = { valid: 0, invalid: 0 };
  fc.assert(
    fc.property(nearly(DevloveSchema), (value) => {
      const valid = Value.Check(DevloveSchema, value);
      seen[valid ? "valid" : "invalid"]++;
      expect(errorsOf(value).length === 0).toBe(valid);
    }),
    { numRuns: 1_000 },
  );
  expect(Math.min(seen.valid, seen.invalid)).toBeGreaterThan(50);
});

test("a key of a domain beside the domains is told where it belongs", () => {
  const content = JSON.stringify({ backend: { urls: ["http://192.0.2.10"] }, domain: {} });
  const verdict = validateDevlove("devlove/1", content, { mainDomain: null, subDomains: [] });
  const told = verdict.ok ? [] : verdict.errors;
  expect(told.find(({ path }) => path === "/backend")?.message).toBe(
    '"backend" is not a known key here, but one of a domain: { "domains": { "www.example.com": { "backend": … } } }',
  );
  expect(told.find(({ path }) => path === "/domain")).toMatchObject({
    message: '"domain" is not a known key',
    did_you_mean: "domains",
  });
});

test("a wildcard is refused with words, whether the domain is known or not", () => {
  const content = JSON.stringify({ domains: { "*.example.com": { tls: {} } } });
  for (const mainDomain of ["www.example.com", null]) {
    const told = validateDevlove("devlove/1", content, { mainDomain, subDomains: [] });
    expect(told).toMatchObject({
      ok: false,
      errors: [
        {
          path: "/domains/*.example.com",
          message: expect.stringMatching(/is a wildcard: .*`tls\.acme`.*HTTP-01.*upload one/),
        },
      ],
    });
  }
});

test.each([
  [
    "a directory without TLS",
    { email: "a@example.com", directory: "http://acme.example.com/" },
    "must be a URL with https://",
  ],
  ["no mail address", { email: "nobody" }, "is not a mail address"],
])("%s is refused with words", (_, acme, words) => {
  const content = JSON.stringify({ domains: { "www.example.com": { tls: { acme } } } });
  const told = validateDevlove("devlove/1", content, { mainDomain: null, subDomains: [] });
  expect(told).toMatchObject({ ok: false, errors: [{ message: expect.stringContaining(words) }] });
});
