// docs/devlove.md and docs/caching.md: every example is valid, every key has one, the errors are the validator's, the table of keys is the schema's.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { devloveKeys, isServed, type DevloveKey } from "../../src/wire/devlove-keys.ts";
import { validateDevlove } from "../../src/wire/devlove-validate.ts";
import { devloveWarnings } from "../../src/wire/devlove-warnings.ts";

const docs = join(import.meta.dirname, "../../docs");
const read = (name: string): string => readFileSync(join(docs, name), "utf8");
const updates = process.env["UPDATE_CONFIG"] === "1";
const update = "written by: UPDATE_CONFIG=1 npx vitest run test/wire/devlove-docs.test.ts";

type Block = { readonly mark: string; readonly json: string };

/** Marked by the comment above it. */
function blocksOf(name: string): readonly Block[] {
  const found = read(name).matchAll(/(?:<!-- ([a-z]+) -->\n)?```json\n([\s\S]*?)```/g);
  return [...found].map(([, mark = "", json = ""]) => ({ mark, json }));
}

/** What stands in a domain is put into one. */
function documentOf(json: string): string {
  const value = JSON.parse(json) as object;
  return "domains" in value ? json : JSON.stringify({ domains: { "www.example.com": value } });
}

function errorsOf(content: string) {
  const verdict = validateDevlove("devlove/1", content, { mainDomain: null, subDomains: [] });
  return verdict.ok ? [] : verdict.errors;
}

const examples = ["devlove.md", "caching.md"].flatMap((name) =>
  blocksOf(name)
    .filter(({ mark }) => mark === "")
    .map(({ json }) => [name, json] as const),
);

test.each(examples)("%s: %s", (_name, json) => {
  expect(errorsOf(documentOf(json))).toEqual([]);
});

test("every key that is served is in an example", () => {
  const named = new Set<string>();
  const walk = (value: unknown, key: string): void => {
    if (Array.isArray(value)) for (const item of value) walk(item, key);
    else if (typeof value === "object" && value !== null)
      for (const [name, child] of Object.entries(value)) {
        const below = key === "" ? name : `${key}.${name}`;
        named.add(below);
        walk(child, below);
      }
  };
  for (const { mark, json } of blocksOf("devlove.md")) {
    const { domains } = JSON.parse(documentOf(json)) as { domains: Record<string, unknown> };
    if (mark === "") for (const domain of Object.values(domains)) walk(domain, "");
  }
  // What `cache.default` may say is what a rule may.
  const isShown = (key: string): boolean =>
    named.has(key) || named.has(key.replace("cache.default", "cache.rules"));
  const missing = devloveKeys().filter(({ key }) => !key.startsWith("images") && !isShown(key));
  expect(missing.map(({ key }) => key)).toEqual([]);
});

function warningsOf(content: string) {
  const verdict = validateDevlove("devlove/1", content, { mainDomain: null, subDomains: [] });
  return verdict.ok ? devloveWarnings(verdict.devlove) : [];
}

test.each([
  ["errors", "refused", errorsOf, 4],
  ["warnings", "warned", warningsOf, 3],
] as const)(
  "the %s are what the validator says of the document above them",
  (what, of, tell, min) => {
    const document = blocksOf("devlove.md").find(({ mark }) => mark === of);
    const told = tell(documentOf(document?.json ?? ""));
    expect(told.length).toBeGreaterThanOrEqual(min);
    if (updates) {
      const text = told.map((one) => `  ${JSON.stringify(one)}`).join(",\n");
      const now = read("devlove.md").replace(
        new RegExp(`(<!-- ${what} -->\n\`\`\`json\n)[\\s\\S]*?\`\`\``),
        (_all, head: string) => `${head}[\n${text}\n]\n\`\`\``,
      );
      writeFileSync(join(docs, "devlove.md"), now);
    }
    const said = blocksOf("devlove.md").find(({ mark }) => mark === what);
    expect(JSON.parse(said?.json ?? "null"), update).toEqual(told);
  },
);

test("what else is shown warns only where all cookies of files are ignored", () => {
  const told = examples.flatMap(([, json]) => warningsOf(documentOf(json)));
  expect(told.map(({ message }) => message.split(":")[0])).toEqual(["all cookies are ignored"]);
});

function rowOf({ key, type, isRequired, default: fallback, description }: DevloveKey): string {
  const other = isRequired
    ? "required"
    : fallback === undefined
      ? ""
      : `\`${JSON.stringify(fallback)}\``;
  const isThere = isServed(key, type === "boolean" ? true : 1);
  const told = isThere ? description : `${description} Not available in this version.`;
  return `| \`${key}\` | ${type.replaceAll("|", "\\|")} | ${other} | ${told} |`;
}

test("the table of keys is the schema's", () => {
  const rows = devloveKeys().map(rowOf).join("\n");
  const table = `| Key | Type | Default | Meaning |\n|---|---|---|---|\n${rows}\n`;
  const marked = /(<!-- keys -->\n)[\s\S]*?(?=<!-- \/keys -->)/;
  if (updates) {
    const now = read("devlove.md").replace(marked, (_all, head: string) => head + table);
    writeFileSync(join(docs, "devlove.md"), now);
  }
  expect(marked.exec(read("devlove.md"))?.[0], update).toBe(`<!-- keys -->\n${table}`);
});
