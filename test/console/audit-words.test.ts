// The audit trail in words: its filter, who did what, and the operations of the API.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { aboutWords, auditFilterOf, auditPath, doerWords } from "../../src/console/audit-filter.ts";
import { operationChoices, operationWords } from "../../src/console/operation-words.ts";

test("a filter is what the address says of it, and nothing else", () => {
  const query = new URLSearchParams("since=2026-11-01T00:00&operation=clearCache&username=&page=2");
  expect(auditFilterOf(query)).toEqual({ since: "2026-11-01T00:00", operation: "clearCache" });
});

test("times of the reader's clock become moments", () => {
  const since = new Date(2026, 10, 1, 8, 15).toISOString();
  expect(auditPath({ since: "2026-11-01T08:15", username: "anna" }, 50)).toBe(
    `/audit/?username=anna&since=${encodeURIComponent(since)}&limit=50`,
  );
});

test("what is no time is central's to refuse", () => {
  expect(auditPath({ until: "soon" }, 50)).toBe("/audit/?until=soon&limit=50");
  expect(auditPath({}, 50)).toBe("/audit/?limit=50");
});

test("who did it", () => {
  expect(doerWords({ via: "api", username: "anna" })).toBe("anna");
  expect(doerWords({ via: "operator", username: null })).toBe("the operator");
  expect(doerWords({ via: "agent", username: null })).toBe("a host");
});

test("what it was about: the first ids, and none of those that say by whom", () => {
  const ids = { by_token_id: 12, clear_id: "6f1d", domain: "www.example.com", a: 1, b: 2, c: 3 };
  expect(aboutWords({ detail: { ids, change: null } })).toBe(
    "clear id 6f1d, domain www.example.com, a 1, b 2",
  );
});

type Document = {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly operationId?: string }>>>
  >;
};

/** It changes nothing, so the trail never has it. */
const unnoted = new Set(["validateDevlove"]);

test("every operation that changes something has words", () => {
  const text = readFileSync(new URL("../../docs/openapi.json", import.meta.url), "utf8");
  const { paths } = JSON.parse(text) as Document;
  const changing = Object.values(paths).flatMap((methods) =>
    Object.entries(methods).flatMap(([method, { operationId: id }]) =>
      method === "get" || id === undefined || unnoted.has(id) ? [] : [id],
    ),
  );
  expect(changing.length).toBeGreaterThan(30);
  expect(changing.filter((id) => operationWords(id) === id)).toEqual([]);
});

test("an operation without words is said as it is called, whatever it is called", () => {
  expect(operationWords("paintItRed")).toBe("paintItRed");
  expect(operationWords("constructor")).toBe("constructor");
});

test("no two choices of the filter read the same", () => {
  const texts = operationChoices().map(([, text]) => text);
  expect(new Set(texts).size).toBe(texts.length);
});
