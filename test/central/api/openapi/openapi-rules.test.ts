// What the recommended rules of Redocly's linter (2.77) ask of the OpenAPI document, beside being valid; docs/redocly.yaml says which two do not hold and why.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { describedDocument, describedText } from "../../../../src/central/api/http/described.ts";
import { at, createContract } from "../../../support/api-contract.ts";

const document = describedDocument();
const { operations } = createContract(document);
const root = join(import.meta.dirname, "../../../..");
const named = ({ method, path }: (typeof operations)[number]): string => `${method} ${path}`;
/** Operations for which it does not hold. */
const failing = (holds: (told: (typeof operations)[number]) => boolean): readonly string[] =>
  operations.filter((one) => !holds(one)).map((one) => named(one));
const idOf = ({ told }: (typeof operations)[number]): string => String(told["operationId"]);

test("info-license: there is one, by its identifier", () => {
  expect(at(document, "info", "license")).toEqual({
    name: "Apache License 2.0",
    identifier: "Apache-2.0",
  });
});

test("tag-description: each tag tells what it is in a sentence, and is used", () => {
  const tags = Object.values(Object(document["tags"])).map((tag) => Object(tag));
  expect(tags.length).toBeGreaterThan(15);
  expect(tags.filter(({ description }) => !/^[A-Z].*\.$/.test(String(description)))).toEqual([]);
  const used = new Set(operations.flatMap(({ told }) => Object.values(Object(told["tags"]))));
  expect(new Set(tags.map(({ name }) => name))).toEqual(used);
});

test("operation-operationId, -unique, -url-safe: each has its own, a verb and what it is done to", () => {
  expect(
    failing((one) =>
      /^(?:get|list|create|update|delete|start|replace|change|rename|rotate|unlink|download|upload|validate|activate|import|mark|remove|is|set|clear|subscribe|test|unsubscribe|fetch|try)[A-Z][A-Za-z]+$/.test(
        idOf(one),
      ),
    ),
  ).toEqual([]);
  expect(new Set(operations.map((one) => idOf(one))).size).toBe(operations.length);
  const ids = new Map(operations.map((one) => [named(one), idOf(one)]));
  expect(ids.get("POST /clear-accelerator-cache/{domain}/")).toBe("clearCache");
  expect(ids.get("GET /list-bad-bots/")).toBe("listBadBots");
  expect(ids.get("POST /mark-as-vip-bot/{range}/")).toBe("markAsVipBot");
  expect(ids.get("GET /monitor-notification-channel/email/")).toBe("listEmailChannels");
});

test("operation-summary, -2xx-response, -4xx-response: each operation has them", () => {
  expect(failing(({ told }) => /^[A-Z]/.test(String(told["summary"])))).toEqual([]);
  const statuses = ({ told }: (typeof operations)[number]): readonly string[] =>
    Object.keys(Object(told["responses"]));
  expect(failing((one) => statuses(one).some((status) => status.startsWith("2")))).toEqual([]);
  // Each refuses a parameter of the query that it does not know.
  expect(failing((one) => statuses(one).includes("400"))).toEqual([]);
});

test("security-defined: each operation says how it is signed in to, by a scheme that is there", () => {
  const schemes = Object.keys(Object(at(document, "components", "securitySchemes")));
  const used = ({ told }: (typeof operations)[number]): readonly string[] =>
    Object.values(Object(told["security"])).flatMap((one) => Object.keys(Object(one)));
  expect(failing(({ told }) => Array.isArray(told["security"]))).toEqual([]);
  expect(failing((one) => used(one).every((name) => schemes.includes(name)))).toEqual([]);
});

test("path-parameters-defined: those of each path, and no others", () => {
  const inPath = ({ told }: (typeof operations)[number]): readonly string[] =>
    Object.values(Object(told["parameters"]))
      .filter((one) => at(one, "in") === "path")
      .map((one) => String(at(one, "name")));
  const wanted = ({ path }: (typeof operations)[number]): readonly string[] =>
    [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  expect(failing((one) => inPath(one).join() === wanted(one).join())).toEqual([]);
});

test("no-unused-components: each of them is referred to", () => {
  const components = Object.entries(Object(document["components"])).flatMap(([kind, members]) =>
    kind === "securitySchemes"
      ? []
      : Object.keys(Object(members)).map((name) => `#/components/${kind}/${name}`),
  );
  const text = describedText();
  expect(components.length).toBeGreaterThan(30);
  expect(components.filter((one) => !text.includes(`"$ref": "${one}"`))).toEqual([]);
});

test("no-server-trailing-slash, no-identical-paths, path-not-include-query", () => {
  expect(document["servers"]).toEqual([{ url: "/presentation-api/v1" }]);
  const paths = Object.keys(Object(document["paths"]));
  const shapes = paths.map((path) => path.replaceAll(/\{\w+\}/g, "{}"));
  expect(new Set(shapes).size).toBe(paths.length);
  expect(paths.filter((path) => /[?#]/.test(path))).toEqual([]);
});

test("two rules are left out, for what the paths are: slashes at the end, and a domain in front of fixed words", () => {
  const config: unknown = parse(readFileSync(join(root, "docs/redocly.yaml"), "utf8"));
  expect(config).toEqual({
    extends: ["recommended"],
    rules: { "no-path-trailing-slash": "off", "no-ambiguous-paths": "off" },
  });
  const paths = Object.keys(Object(document["paths"]));
  expect(paths.filter((path) => !path.endsWith("/"))).toEqual([]);
  // What could be meant twice begins with a domain in one of its two readings; fixed words have no dot.
  const parts = paths.map((path) => path.split("/").slice(1, -1));
  const isIdBesideWord = (one: string, other: string): boolean =>
    [`${one} ${other}`, `${other} ${one}`].some((both) => /^\{\w+_id\} [\w-]+$/.test(both));
  const isFree = (part: string | undefined): boolean => part?.startsWith("{") === true;
  const ambiguous = parts.flatMap((a, at) =>
    parts
      .slice(at + 1)
      .filter(
        (b) =>
          a.length === b.length &&
          a.every((part, n) => part === b[n] || isFree(part) || isFree(b[n])),
      )
      .map((b) => [a, b] as const),
  );
  expect(ambiguous.length).toBeGreaterThan(5);
  for (const pair of ambiguous) {
    // An id is a number, which no fixed word is.
    if (pair[0].some((part, n) => isIdBesideWord(part, pair[1][n] ?? ""))) continue;
    const firsts = pair.map(([first]) => first);
    expect(firsts).toContain("{domain_name}");
    const fixed = firsts.filter((first) => first !== "{domain_name}");
    expect(fixed).toEqual([expect.stringMatching(/^[\w-]+$/)]);
  }
});
