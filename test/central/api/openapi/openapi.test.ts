// The OpenAPI document: valid, whole, true. What it promises of answers is held against every answer of the API's tests (api-harness.ts).

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Compile } from "typebox/schema";
import { describe, expect, test } from "vitest";
import { openApiCommand } from "../../../../src/central/main.ts";
import {
  describedDocument,
  describedPage,
  describedSubjects,
  describedText,
} from "../../../../src/central/api/http/described.ts";
import type { Endpoint } from "../../../../src/central/api/http/endpoint.ts";
import { indexColumns } from "../../../../src/core/patterns/index-schema.ts";
import { cacheClear } from "../../../../src/wire/customer/clear.ts";
import { at, createContract } from "../../../support/api-contract.ts";
import { start, settingsOf } from "../../../support/central-whole.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { documented, specifiedPaths } from "../specified-paths.ts";
import { expectGenerated } from "../../../support/generated.ts";

const root = join(import.meta.dirname, "../../../..");
const document = describedDocument();
const contract = createContract(document);
const endpoints = describedSubjects().flatMap(({ endpoints: found }) => found);
const named = (endpoint: Endpoint): string =>
  `${endpoint.method} ${endpoint.path.replaceAll(/:(\w+)/g, "{$1}")}`;
const operations = contract.operations.map((one) => [`${one.method} ${one.path}`, one] as const);

// The schema of OpenAPI documents as the OpenAPI Initiative publishes it (Apache-2.0); its $id tells of which date.
const schema: object = JSON.parse(
  readFileSync(join(root, "test/support/openapi-3.1.schema.json"), "utf8"),
);
const meta = Compile(schema);
const isValid = (value: unknown): boolean => meta.Errors(value)[0];

describe("the document", () => {
  test("is a valid OpenAPI 3.1 document", () => {
    expect(meta.Errors(document)).toEqual([true, []]);
  });

  test.each([
    ["without what it must hold", { openapi: "3.1.1" }],
    ["of another version", { ...document, openapi: "3.0.3" }],
    ["with an unknown member", { ...document, nonsense: 1 }],
    [
      "with an answer without a description",
      { paths: { "/x": { get: { responses: { 200: {} } } } } },
    ],
    [
      "with a parameter of a path that may be absent",
      { paths: { "/x": { get: { parameters: [{ name: "a", in: "path", schema: {} }] } } } },
    ],
  ])("%s would be found", (_what, part) => {
    expect(isValid({ ...document, ...part }) && "paths" in part).toBe(false);
    expect(isValid({ openapi: "3.1.1", ...part })).toBe(false);
  });

  test("names every column that a pattern may ask for", () => {
    const { description } = Object(cacheClear.schema);
    for (const column of indexColumns) expect(description).toMatch(new RegExp(`\\b${column}\\b`));
  });

  test("has every call that the documents for customers name", () => {
    const patternOf = (path: string): string => path.replaceAll(/\{\w+\}/g, "{}");
    const known = new Set(contract.operations.map((one) => `${one.method} ${patternOf(one.path)}`));
    const files = readdirSync(join(root, "docs")).filter((file) => file.endsWith(".md"));
    const calls = files.flatMap((file) =>
      [
        ...readFileSync(join(root, "docs", file), "utf8").matchAll(
          /`((?:GET|POST|PUT|DELETE|PATCH) \/[\w{}/-]*\/)(?![\w<])/g,
        ),
      ].map(([, call = ""]) => call.replace("/presentation-api/v1", "")),
    );
    expect(calls.length).toBeGreaterThan(10);
    expect(calls.filter((call) => !known.has(patternOf(call)))).toEqual([]);
  });

  test("is what docs/openapi.json holds", () => {
    expectGenerated("docs/openapi.json", () => describedText());
  });

  test("is printed by `accel-central openapi`", async () => {
    let printed = "";
    await openApiCommand.run({
      args: [],
      out: (text) => void (printed += text),
      version: "0",
      program: "",
      colour: false,
      env: {},
      stop: new AbortController().signal,
      onReload: () => {},
    });
    expect(printed).toBe(describedText());
  });

  test("refers to nothing that is not there", () => {
    const refs = [...describedText().matchAll(/"\$ref": "#\/([^"]+)"/g)].map(([, ref = ""]) => ref);
    expect(refs.length).toBeGreaterThan(100);
    const lost = refs.filter((ref) => at(document, ...ref.split("/")) === undefined);
    expect(lost).toEqual([]);
  });

  test("has every path of the specification", () => {
    const known = new Set<string>(operations.map(([name]) => name));
    expect(specifiedPaths.filter((path) => !known.has(documented(path)))).toEqual([]);
  });

  test("every operation is named once and every endpoint is an operation", () => {
    const ids = operations.map(([, { told }]) => told["operationId"]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(operations.map(([name]) => name).sort()).toEqual(endpoints.map(named).sort());
  });
});

function examplesAt(media: unknown): readonly unknown[] {
  return Object.values(Object(at(media, "examples") ?? {})).map((one) => at(one, "value"));
}

const endpointOf = (name: string): Endpoint | undefined =>
  endpoints.find((one) => named(one) === name);
const isGood = (status: string): boolean => status < "400";

test.each(operations)("%s tells what it is, what it needs and what it gives", (name, { told }) => {
  expect(told["summary"]).toEqual(expect.any(String));
  expect(endpointOf(name)?.gives).toBeDefined();
  expect(Object.keys(Object(told["responses"])).filter(isGood)).toHaveLength(1);
  const parameters: readonly unknown[] = Object(told["parameters"]);
  for (const parameter of parameters.filter((one) => at(one, "$ref") === undefined)) {
    expect(at(parameter, "description"), String(at(parameter, "name"))).toEqual(expect.any(String));
    if (at(parameter, "in") === "path")
      expect(at(parameter, "schema", "examples"), String(at(parameter, "name"))).toBeDefined();
  }
});

const bodies = operations.flatMap(([name, { told }]) => {
  const media = at(told, "requestBody", "content", "application/json");
  return media === undefined ? [] : [[name, media] as const];
});

test.each(bodies)("%s accepts the examples of its body", (name, media) => {
  const examples = examplesAt(media);
  expect(examples.length).toBeGreaterThan(0);
  for (const example of examples) {
    expect(contract.schemaFaults(at(media, "schema"), example)).toEqual([]);
    expect(endpointOf(name)?.accept(Object(example), () => "7")).toMatchObject({ ok: true });
  }
});

const answers = operations.flatMap(([name, { told }]) =>
  Object.entries(Object(told["responses"])).flatMap(([status, answer]) => {
    const media = at(answer, "content", "application/json");
    return isGood(status) && media !== undefined ? [[name, media] as const] : [];
  }),
);

test("there are operations, bodies and answers to look at", () => {
  expect(operations.length).toBeGreaterThan(60);
  expect(bodies.length).toBeGreaterThan(20);
  expect(answers.length).toBeGreaterThan(50);
});

test.each(answers)("%s has examples of its answer that fit", (_name, media) => {
  const examples = examplesAt(media);
  expect(examples.length).toBeGreaterThan(0);
  for (const example of examples)
    expect(contract.schemaFaults(at(media, "schema"), example)).toEqual([]);
});

describe("the check of answers", () => {
  const headers = {
    "x-request-id": "0123456789abcdef",
    "cache-control": "no-store",
    "content-type": "application/json",
  };
  const good = {
    method: "GET",
    path: "/presentation-api/v1/customer/1/?x",
    status: 200,
    headers,
    body: { id: 1, name: "Acme" },
  };
  const problem = { type: "about:blank", title: "Bad Request", status: 400, detail: "x" };
  const typed = { ...headers, "content-type": "application/problem+json" };

  test("lets what is promised pass", () => {
    expect(contract.faults(good)).toEqual([]);
  });

  test.each<[string, object]>([
    ["a member that is not told", { body: { id: 1, name: "Acme", secret: "x" } }],
    ["a member of another type", { body: { id: "1", name: "Acme" } }],
    ["a member that is missing", { body: { id: 1 } }],
    ["another status", { status: 201 }],
    [
      "a refusal that is not told",
      { status: 409, body: { ...problem, status: 409 }, headers: typed },
    ],
    ["a refusal that is no problem document", { status: 404, body: { error: "x" } }],
    [
      "a problem that names nothing",
      { method: "POST", path: "/trial/", status: 400, body: problem, headers: typed },
    ],
    ["another content type", { headers: { ...headers, "content-type": "text/html" } }],
    ["no request id", { headers: { "cache-control": "no-store" } }],
    ["a header that is not told", { headers: { ...headers, link: "<x>" } }],
  ])("finds %s", (_what, changed) => {
    expect(contract.faults({ ...good, ...changed })).not.toEqual([]);
  });
});

describe("the page", () => {
  test("has a place for every operation and schema, and all its links lead somewhere", () => {
    const page = describedPage();
    const places = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    for (const [, { told }] of operations) expect(places).toContain(told["operationId"]);
    for (const name of Object.keys(Object(at(document, "components", "schemas"))))
      expect(places).toContain(`schema-${name}`);
    const links = [...page.matchAll(/ href="#([^"]+)"/g)].map(([, id]) => id);
    expect(links.filter((id) => !places.has(id))).toEqual([]);
    expect(links.length).toBeGreaterThan(operations.length);
  });

  test("loads nothing: no script, no picture, nothing from elsewhere", () => {
    expect(describedPage()).not.toMatch(
      /<script|<img|<link|<iframe|\son\w+=|url\(|@import|https?:\/\/(?!\w*\.?example)/i,
    );
  });
});

test("central serves document and page without a token", async () => {
  using dir = tempDir();
  await using central = await start(settingsOf(dir.path));
  const base = `${central.url}/presentation-api/v1`;
  const served = await fetch(`${base}/openapi.json`);
  expect([served.status, served.headers.get("content-type")]).toEqual([200, "application/json"]);
  expect(await served.text()).toBe(describedText());
  const page = await fetch(`${base}/docs`);
  expect([page.status, page.url]).toEqual([200, `${base}/docs/`]);
  expect(page.headers.get("content-security-policy")).toMatch(
    /^default-src 'none'; style-src 'sha256-[\w+/]{43}=';.*frame-ancestors 'none'$/,
  );
  expect(await page.text()).toBe(describedPage());
});
