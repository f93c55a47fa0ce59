// What documents tell operators to type is there: commands with their options, and keys of settings.

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { agentFields } from "../src/agent/settings/fields.ts";
import { centralFields } from "../src/central/settings/fields.ts";
import { programs } from "../src/start/commands.ts";

const root = join(import.meta.dirname, "..");
const pages = [...globSync("docs/**/*.md", { cwd: root }), "README.md"]
  .filter((path) => !path.includes("internals"))
  .toSorted()
  .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));

/** A command as it is typed, with what follows it up to the end of the code or of its part of a pipe. */
const typed = /\b(accel-(?:agent|central)) ([a-z]+)((?: +(?:"[^"]*"|'[^']*'|[^\s`#|;)]+))*)/g;
/** Code: a line of a block, or between backticks. */
const isCode = (line: string): boolean => /^(?:[$#] |[A-Z_]+=\S+ )?accel-|`accel-/.test(line);

async function usageOf(program: string, command: string): Promise<string | undefined> {
  const commands = program === "accel-agent" ? programs.agent : programs.central;
  if (command === "version" || command === "help") return "";
  return Object.hasOwn(commands, command) ? (await commands[command]?.load())?.usage : undefined;
}

/** What of a line is no command of ours, or no option of it. */
async function unknownIn(line: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [, program = "", command = "", rest = ""] of line.matchAll(typed)) {
    const usage = await usageOf(program, command);
    if (usage === undefined) found.push(`${program} ${command}`);
    for (const option of rest.match(/(?<!\S)--?[a-z][a-z0-9-]*/g) ?? [])
      if (usage?.includes(option) === false) found.push(`${program} ${command} ${option}`);
  }
  return found;
}

test("commands and options that documents name are there", async () => {
  const unknown: string[] = [];
  let lines = 0;
  for (const { path, text } of pages)
    for (const line of text.split("\n").filter(isCode)) {
      lines++;
      unknown.push(...(await unknownIn(line)).map((what) => `${path}: ${what}`));
    }
  expect(unknown.filter((one) => !one.endsWith(": accel-agent and"))).toEqual([]);
  expect(lines).toBeGreaterThan(200);
});

test("what is not there would be found", async () => {
  expect(await unknownIn("accel-agent stats --json")).toEqual(["accel-agent stats"]);
  expect(await unknownIn("accel-central clear a.example --prefix /x --hard")).toEqual([
    "accel-central clear --hard",
  ]);
});

/** The keys of a block as settings have them, with dots. */
function keysOf(value: unknown, known: ReadonlySet<string>, above = ""): readonly string[] {
  if (typeof value !== "object" || value === null || Array.isArray(value) || known.has(above))
    return [above];
  return Object.entries(value).flatMap(([key, below]) =>
    keysOf(below, known, above === "" ? key : `${above}.${key}`),
  );
}

test("keys of the settings that documents for operators name are there", () => {
  const known = new Set([...Object.keys(agentFields), ...Object.keys(centralFields)]);
  const blocks = pages
    .filter(({ path }) => path.startsWith("docs/operations/") || path === "README.md")
    .flatMap(({ path, text }) =>
      [...text.matchAll(/^```yaml\n([^]*?)^```/gm)].map(([, block = ""]) => ({ path, block })),
    )
    .filter(({ block }) => !block.includes("scrape_configs"));
  expect(blocks.length).toBeGreaterThan(3);
  const unknown = blocks.flatMap(({ path, block }) =>
    keysOf(parse(block), known)
      .filter((key) => !known.has(key))
      .map((key) => `${path}: ${key}`),
  );
  expect(unknown).toEqual([]);
});
