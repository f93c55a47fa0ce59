// The specification of the customer API line by line: a row for each line of its endpoint tables, rules, states, errors and limits.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Api } from "./api-harness.ts";
import { endpointRows } from "./endpoint-rows.ts";
import { noticeRows } from "./endpoint-rows-notices.ts";
import { openRowApi, Scene } from "./row-scene.ts";
import { ruleRows } from "./rule-rows.ts";
import { specifiedPaths } from "./specified-paths.ts";

const rows = [...endpointRows, ...noticeRows, ...ruleRows];

let api: Api;
beforeAll(async () => {
  api = await openRowApi();
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  const lines = rows.map(
    ({ line, fact }, at) => `  ${String(at + 1).padStart(3)}  ${line}: ${fact}`,
  );
  process.stdout.write(`the specification, a row a line:\n${lines.join("\n")}\n`);
});

test.each(rows.map((row, at) => ({ no: at + 1, ...row })))(
  "row $no, $line: $fact",
  async ({ run, isAlone }) => {
    await using scene = await (isAlone ? Scene.open() : Scene.on(api));
    await run(scene);
  },
);

test("every path of the specification has its row", () => {
  const told = new Set([...endpointRows, ...noticeRows].map(({ line }) => line));
  expect(specifiedPaths.filter((path) => !told.has(path))).toEqual([]);
  expect(rows.length).toBeGreaterThan(105);
});

type SpecifiedLine = {
  /** How rows name it: its beginning. */
  readonly begins: string;
  /** SHA-256 of all of it. */
  readonly sha256: string;
};

/** The specification is no part of this tree; what it asks for is, line by line. */
const toldFile = join(import.meta.dirname, "specified-lines.json");
const specification = join(import.meta.dirname, "../../../../shared/seed/customer-api.md");
const isHere = existsSync(specification);
const update =
  "written from the specification by: UPDATE_CONFIG=1 npx vitest run test/central/api/rows.test.ts";

test("no line of the specification is without a row, and no row is of another line", () => {
  const told = JSON.parse(readFileSync(toldFile, "utf8")) as readonly SpecifiedLine[];
  expect(told.length).toBeGreaterThan(100);
  const named = rows.map(({ line }) => line);
  expect(told.filter(({ begins }) => !named.includes(begins))).toEqual([]);
  expect(named.filter((line) => !told.some(({ begins }) => begins === line))).toEqual([]);
  // An endpoint that stands there twice has two rows.
  const count = (of: readonly string[], one: string): number =>
    of.filter((other) => other === one).length;
  const endpoints = told
    .map(({ begins }) => begins)
    .filter((begins) => /^(?:GET|POST|PUT|DELETE) \//.test(begins));
  expect(endpoints.filter((line) => count(named, line) < count(endpoints, line))).toEqual([]);
});

test.skipIf(!isHere)("the list of its lines is that of the specification beside this tree", () => {
  const lines = specifiedLines(readFileSync(specification, "utf8"));
  const text = `${JSON.stringify(lines, null, 2)}\n`;
  if (process.env["UPDATE_CONFIG"] === "1") writeFileSync(toldFile, text);
  expect(readFileSync(toldFile, "utf8"), update).toBe(text);
});

/** Each with the row that names most of it; a line that no row names stands there with its first words. */
function specifiedLines(text: string): readonly SpecifiedLine[] {
  return linesOf(text).map((line) => {
    const [longest = line.split(" ").slice(0, 6).join(" ")] = rows
      .map((row) => row.line)
      .filter((begins) => line.startsWith(begins))
      .toSorted((one, other) => other.length - one.length);
    return { begins: longest, sha256: createHash("sha256").update(line).digest("hex") };
  });
}

/** Lines of tables, numbered rules and points, from the states on. */
function linesOf(text: string): readonly string[] {
  let channels = "";
  return text
    .slice(text.indexOf("## States and transitions"))
    .split("\n")
    .flatMap((line) => {
      if (line.startsWith("### "))
        channels = line.includes("channels") ? "/monitor-notification-channel" : "";
      const endpoint = /^\| (GET|POST|PUT|DELETE) \| `([^`]+)`/.exec(line);
      if (endpoint !== null)
        return [`${endpoint[1]} ${(endpoint[2] ?? "").replace(/^\.\.\./, channels)}`];
      const rule = /^(?:\d\. |- )(.*)$/.exec(line)?.[1];
      if (rule !== undefined) return [rule];
      const cells = /^\| (?!-|Method|Subject|Condition|Limit)(.*) \|$/.exec(line)?.[1];
      return cells === undefined ? [] : [cells];
    });
}
