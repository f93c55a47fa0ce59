// The answers that the document promises: what each refusal carries, and how the page of the API shows it.

import { expect, test } from "vitest";
import { answerComponents } from "../../../../src/central/api/openapi/openapi-answers.ts";
import { operationArticle } from "../../../../src/central/api/openapi/openapi-page-parts.ts";
import { jsonObjectOf } from "../../../../src/central/api/openapi/openapi-schema.ts";
import { createContract } from "../../../support/api-contract.ts";

const { headers, responses } = answerComponents(new Map(), { type: "object" });
const schemaOf = (header: string): unknown => jsonObjectOf(jsonObjectOf(headers)[header])["schema"];

test.each<readonly [string, readonly unknown[], readonly unknown[]]>([
  ["RetryAfter", [1, 2, 3_600], [0, -1, 1.5, "1"]],
  ["IdempotencyReplayed", ["true"], ["false", true]],
])("the header %s takes %j, and none of %j", (header, good, bad) => {
  const { schemaFaults } = createContract({ components: {}, paths: {} });
  for (const value of good) expect(schemaFaults(schemaOf(header), value)).toEqual([]);
  for (const value of bad) expect(schemaFaults(schemaOf(header), value)).not.toEqual([]);
});

test("whoever is to come again is told when, and whoever is not known how to sign in", () => {
  const carried = Object.entries(jsonObjectOf(responses)).flatMap(([name, response]) =>
    Object.keys(jsonObjectOf(jsonObjectOf(response)["headers"]))
      .filter((header) => header !== "X-Request-Id")
      .map((header) => `${name}: ${header}`),
  );
  expect(carried).toEqual([
    "Unauthorized: WWW-Authenticate",
    "TooMany: Retry-After",
    "Unavailable: Retry-After",
  ]);
});

test("on the page what is refused stands as a refusal, from 400 on", () => {
  const answers = [200, 303, 400, 404, 500].map((status) => [
    String(status),
    { description: `Told with ${status}.`, content: { "text/plain": { schema: {} } } },
  ]);
  const operation = {
    operationId: "askIt",
    summary: "Ask",
    responses: Object.fromEntries(answers),
  };
  const article = operationArticle("get", "/it/", operation, jsonObjectOf);
  const shown = [...article.matchAll(/<p( class="refusal")?><b>(\d+)<\/b> (.*)/g)];
  expect(shown.map(([, refusal, status]) => [Number(status), refusal !== undefined])).toEqual([
    [200, false],
    [303, false],
    [400, true],
    [404, true],
    [500, true],
  ]);
  // Of what content a refusal is, is told once for all.
  expect(shown.map(([, , , text]) => text?.trim())).toEqual([
    "Told with 200. anything",
    "Told with 303. anything",
    "Told with 400.",
    "Told with 404.",
    "Told with 500.",
  ]);
});
