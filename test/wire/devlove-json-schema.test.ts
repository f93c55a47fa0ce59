// The JSON Schema of devlove/1: the file is what is generated, every key is explained, and it is never stricter than the validator.

import { describe, expect, it, test } from "vitest";
import Schema from "typebox/schema";
import { devloveJsonSchema, devloveJsonSchemaText } from "../../src/wire/devlove-json-schema.ts";
import { devloveKeys } from "../support/devlove-key-table.ts";
import { validateDevlove } from "../../src/wire/devlove-validate.ts";
import { expectGenerated } from "../support/generated.ts";

const domain = "www.example.com";

test("config/devlove-1.schema.json is the schema, written out", () => {
  expectGenerated("config/devlove-1.schema.json", () => devloveJsonSchemaText());
});

type Node = { readonly [keyword: string]: unknown };

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function* nodesIn(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const item of value) yield* nodesIn(item);
  if (!isNode(value)) return;
  yield value;
  for (const child of Object.values(value)) yield* nodesIn(child);
}

describe("what an editor shows", () => {
  const titled = new Map(
    [...nodesIn(devloveJsonSchema())].flatMap((node) => {
      const { title } = node;
      return typeof title === "string" ? [[title, node] as const] : [];
    }),
  );

  it("is every key with its default and a description", () => {
    for (const { key, default: fallback, description } of devloveKeys()) {
      const node = titled.get(key);
      expect(node?.["default"], key).toEqual(fallback);
      expect(description, key).toMatch(/\w.*\.$/);
      expect(String(node?.["description"]), key).toContain(description);
    }
  });

  it("has no keyword of ours", () => {
    for (const node of nodesIn(devloveJsonSchema()))
      for (const keyword of Object.keys(node)) expect(keyword).not.toMatch(/^x-/);
  });
});

const lists = ["cache.rules", "cache.presets", "redirects", "limits.requests", "limits.bytes"];

/** `{backend: {health: value}}` out of `backend.health`; what else is required there comes along. */
function documentWith(key: string, value: unknown): unknown {
  const parts = key.split(".");
  const filled: Readonly<Record<string, unknown>> = {
    backend: { urls: ["http://127.0.0.1:8081"] },
    "backend.health": { path: "/", interval_s: 5, timeout_s: 1, statuses: [200] },
    "cache.rules": { path: "/**" },
    "cache.presets": { name: "woocommerce" },
    redirects: { from: "/a", to: "/b", status: 301 },
    "limits.requests": { path: "/**", rate: 5 },
    "limits.bytes": { path: "/**", rate_bytes_s: 1_024 },
    "tls.acme": { email: "a@example.com" },
  };
  let said = value;
  for (let depth = parts.length - 1; depth >= 0; depth--) {
    const parent = parts.slice(0, depth).join(".");
    const known = filled[parent];
    const whole = { ...(isNode(known) && known), [parts[depth] ?? ""]: said };
    said = lists.includes(parent) ? [whole] : whole;
  }
  return { domains: { [domain]: said } };
}

const schema = devloveJsonSchema();
const bySchema = (document: unknown): boolean => Schema.Check(schema, document);
const byValidator = (document: unknown): boolean =>
  validateDevlove("devlove/1", JSON.stringify(document), { mainDomain: domain, subDomains: [] }).ok;

describe("the examples", () => {
  const rows = devloveKeys().flatMap(({ key, examples }) =>
    examples.map((value) => [key, value] as const),
  );

  it("are many", () => {
    expect(rows.length).toBeGreaterThan(40);
  });

  it.each(rows)("%s: %j is valid", (key, value) => {
    const document = documentWith(key, value);
    expect([byValidator(document), bySchema(document)]).toEqual([true, true]);
  });
});

describe("it refuses what the validator refuses, as far as a schema can", () => {
  it.each([
    ["vews_dir", "."],
    ["views_dir", "/abs"],
    ["index", ["a", "a"]],
    ["index", ["a/b"]],
    ["redirects.status", 303],
    ["redirects.to", "ftp://x"],
    ["headers.set", { "a b": "c" }],
    ["backend.urls", ["ftp://127.0.0.1"]],
    ["backend.urls", []],
    ["backend.urls", ["http://user@127.0.0.1"]],
    ["backend.retries", 4],
    ["backend.health", { path: "/up" }],
    ["backend.health.path", "up"],
    ["backend.health.interval_s", 0],
    ["cache.rules.path", "img"],
    ["cache.rules.match.header", { "X-A": "" }],
    ["cache.rules.match.header", { X_A: "b" }],
    ["cache.rules.match.method", ["HEAD"]],
    ["cache.rules.match.query", ["a&b"]],
    ["cache.presets.name", "typo3"],
    ["cache.presets.base", "/blog/"],
    ["cache.rules.query", {}],
    ["cache.rules.query", { ignore: [], keep: [] }],
    ["cache.rules.query", { sort: 1 }],
    ["cache.rules.cookies.vary", ["a b"]],
    ["cache.rules.cookies.vary", ["=a"]],
    ["cache.rules.cookies.bypass", ['a="b"']],
    ["cache.rules.cookies.ignore", ["a=b,c"]],
    ["cache.default", { bypass: true, ttl_s: 5 }],
    ["cache.default", { bypass: true, browser_ttl_s: 5 }],
    ["cache.default", { bypass: true, negative_ttl_s: 5 }],
    ["cache.default.ttl_s", 1.5],
    ["bots.mode", "watch"],
    ["images.optimize", 1],
    ["images.formats", ["jpeg"]],
    ["images.formats", ["webp", "webp"]],
    ["images.quality", 0],
    ["images.quality", 101],
    ["images.widths", [15]],
    ["images.widths", [4_097]],
    ["images.widths", [640, 640]],
    ["images.widths", Array.from({ length: 17 }, (_, no) => 16 + no)],
    ["images.variants_per_day_max", -1],
    ["limits.body_bytes_max", -1],
    ["limits.requests.path", "login"],
    ["limits.requests.methods", ["HEAD"]],
    ["limits.requests.methods", ["GET", "GET"]],
    ["limits.requests.rate", 0],
    ["limits.requests.rate", 1.5],
    ["limits.requests.per_s", 86_401],
    ["limits.requests.burst", 10_001],
    ["limits.requests.mode", "off"],
    ["limits.requests", [{ path: "/**" }]],
    ["limits.requests", Array.from({ length: 17 }, (_, rate) => ({ path: "/**", rate: rate + 1 }))],
    ["limits.bytes.rate_bytes_s", 1_023],
    ["limits.bytes.after_bytes", -1],
    ["tls.acme", {}],
    ["tls.acme", { directory: "https://acme.example.com/" }],
    ["tls.acme.email", "nobody"],
    ["tls.acme.directory", "http://acme.example.com/"],
    ["tls.acme.directory", "https://a:b@acme.example.com/"],
  ])("%s: %j", (key, value) => {
    const document = documentWith(key, value);
    expect([byValidator(document), bySchema(document)]).toEqual([false, false]);
  });

  it("names that are no host's", () => {
    expect(bySchema({ domains: { "Not A Host": {} } })).toBe(false);
    expect(bySchema({})).toBe(false);
  });
});

/** Texts that a pattern might be too strict for. */
const oddTexts = [
  "HTTP://Origin.Example.com:8080/",
  "https://[::1]:8081",
  "http://127.0.0.1",
  "/a%20b/**",
  "**/*.jpg",
  "*",
  "/é",
  "utm_*",
  "ü",
  "a b",
  "_dmarc.example.com",
  "/a?b=c",
  "/x#y",
  "https://www.example.com/new?x=1#top",
  "./static/",
  "static/",
  ".well-known",
  "index.html",
  "X-Frame-Options",
  "!#$%&'*+.^_`|~",
  "default-src 'self'; img-src *",
  "\u00e4\t",
];

test("it is never stricter than the validator", () => {
  const lists = new Set(["index", "headers.remove", "backend.urls"]);
  let accepted = 0;
  for (const { key, type } of devloveKeys()) {
    const isList = lists.has(key) || type.startsWith("list of string");
    if (!isList && !type.startsWith("string") && key !== "headers.set") continue;
    for (const text of oddTexts) {
      const value = isList ? [text] : key === "headers.set" ? { "X-A": text } : text;
      const document = documentWith(key, value);
      if (!byValidator(document)) continue;
      accepted++;
      expect(bySchema(document), `${key} ${text}`).toBe(true);
    }
  }
  expect(accepted).toBeGreaterThan(80);
});
