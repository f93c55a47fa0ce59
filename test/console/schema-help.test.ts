// What a schema says about a place of a document.

import { expect, test } from "vitest";
import { helpAt, type HelpSchema } from "../../src/console/schema-help.ts";

const schema: HelpSchema = {
  description: "A devlove.",
  properties: {
    domains: {
      description: "By name.",
      additionalProperties: { $ref: "#/$defs/domain" },
    },
    mode: { enum: ["fast", "safe"] },
  },
  $defs: {
    domain: {
      description: "One domain. It has a backend.",
      properties: {
        backend: { description: "Where answers come from. It has URLs.", type: "object" },
        rules: { items: { anyOf: [{ properties: { ttl: { description: "Seconds." } } }] } },
        sub: { $ref: "#/$defs/domain" },
      },
      patternProperties: { "^x-": { description: "Anything." } },
    },
    loop: { anyOf: [{ $ref: "#/$defs/loop" }] },
  },
};

test("without a schema nothing is told", () => {
  expect(helpAt(undefined, ["a"]).fields).toEqual([]);
});

test("the root, with the first sentence about each field", () => {
  expect(helpAt(schema, [])).toMatchObject({
    description: "A devlove.",
    fields: [
      ["domains", "By name."],
      ["mode", ""],
    ],
  });
});

test("references are followed, and fields told of the first sentence", () => {
  const { description, fields } = helpAt(schema, ["domains", "www.example.com"]);
  expect(description).toBe("One domain. It has a backend.");
  expect(fields).toEqual([
    ["backend", "Where answers come from."],
    ["rules", ""],
    ["sub", "One domain."],
  ]);
});

test.each<readonly [string, readonly (string | number)[], string | undefined]>([
  ["the values that there are", ["mode"], 'One of "fast", "safe".'],
  ["an alternative in a list", ["domains", "a.b", "rules", 3, "ttl"], "Seconds."],
  ["a pattern", ["domains", "a.b", "x-other"], "Anything."],
  [
    "a schema within itself",
    ["domains", "a.b", "sub", "sub", "backend"],
    "Where answers come from. It has URLs.",
  ],
  [
    "a place that it does not know: the last that it does",
    ["domains", "a.b", "none", "x"],
    "One domain. It has a backend.",
  ],
])("%s", (_what, keys, description) => {
  expect(helpAt(schema, keys).description).toContain(description);
});

test("a schema that refers to itself ends at itself", () => {
  expect(helpAt({ ...schema, $ref: "#/$defs/loop" }, ["mode"]).fields).toEqual([]);
});
