// The specification of the customer API line by line: a row for each line of its endpoint tables, rules, states, errors and limits.

import { existsSync, readFileSync } from "node:fs";
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

const specification = join(import.meta.dirname, "../../../../shared/seed/customer-api.md");

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

// The specification is no part of this tree: where it lies beside it, nothing of it is without a row.
test.skipIf(!existsSync(specification))(
  `no line of ${existsSync(specification) ? "the specification" : "a specification that is not here"} is without a row`,
  () => {
    const lines = linesOf(readFileSync(specification, "utf8"));
    expect(lines.length).toBeGreaterThan(100);
    expect(lines.filter((line) => !rows.some((row) => line.startsWith(row.line)))).toEqual([]);
    expect(rows.filter((row) => !lines.some((line) => line.startsWith(row.line)))).toEqual([]);
    const count = (of: readonly string[], one: string): number =>
      of.filter((other) => other === one).length;
    const told = rows.map(({ line }) => line);
    const endpoints = lines.filter((line) => /^(?:GET|POST|PUT|DELETE) \//.test(line));
    expect(endpoints.filter((line) => count(told, line) < count(endpoints, line))).toEqual([]);
  },
);
