// docs/devlove.md, docs/caching.md, the guides and docs/operations/from-nginx.md: every example is valid, every key has one, the errors are the validator's, the table of keys is the schema's.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { presetRules } from "../../src/core/serving/cache-presets.ts";
import { PresetSchema } from "../../src/core/serving/devlove-cache.ts";
import { devloveKeys, type DevloveKey } from "../support/devlove-key-table.ts";
import { validateDevlove } from "../../src/wire/devlove-validate.ts";
import { devloveWarnings } from "../../src/wire/devlove-warnings.ts";
import { expectGenerated } from "../support/generated.ts";

const docs = join(import.meta.dirname, "../../docs");
const read = (name: string): string => readFileSync(join(docs, name), "utf8");
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

const guides = readdirSync(join(docs, "guides")).filter(
  (name) => name.endsWith(".md") && name !== "README.md",
);

test.each(guides)("the guide %s is listed and has settings, and says what to look at", (name) => {
  expect(read("guides/README.md")).toContain(`(${name})`);
  const blocks = blocksOf(`guides/${name}`).filter(({ mark }) => mark === "");
  expect(blocks.length).toBeGreaterThan(0);
  // A reader copies it as it stands.
  for (const { json } of blocks) expect(JSON.parse(json)).toHaveProperty("domains");
  expect(read(`guides/${name}`)).toContain("## What to look at");
});

const pages = ["devlove.md", "caching.md", "images.md", "operations/from-nginx.md"];
const examples = [...pages, ...guides.map((name) => `guides/${name}`)].flatMap((name) =>
  blocksOf(name)
    .filter(({ mark }) => mark === "")
    .map(({ json }) => [name, json] as const),
);

test.each(examples)("%s: %s", (_name, json) => {
  expect(errorsOf(documentOf(json))).toEqual([]);
});

test("every key is in an example, of the document or of its table", () => {
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
  const isShown = ({ key, examples }: DevloveKey): boolean =>
    examples.length > 0 || named.has(key) || named.has(key.replace("cache.default", "cache.rules"));
  const missing = devloveKeys().filter((row) => !isShown(row));
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
    const text = told.map((one) => `  ${JSON.stringify(one)}`).join(",\n");
    const marked = new RegExp(`(<!-- ${what} -->\n\`\`\`json\n)[\\s\\S]*?\`\`\``);
    expect(read("devlove.md")).toMatch(marked);
    expectGenerated("docs/devlove.md", (now) =>
      now.replace(marked, (_all, head: string) => `${head}[\n${text}\n]\n\`\`\``),
    );
  },
);

test("what else is shown warns of nothing", () => {
  const told = examples.flatMap(([, json]) => warningsOf(documentOf(json)));
  expect(told).toEqual([]);
});

const asJson = (value: unknown): string => {
  const text = JSON.stringify(value);
  // A space after each comma and colon that stand outside of texts.
  return `\`${text.replaceAll(/("(?:[^"\\]|\\.)*")|([,:])/g, (_all, quoted, mark) => quoted ?? `${mark} `)}\``;
};

function rowOf({ key, type, isRequired, examples, description, ...row }: DevloveKey): string {
  const other = isRequired ? "required" : row.default === undefined ? "" : asJson(row.default);
  const example = examples.length === 0 ? "" : asJson(examples[0]);
  return `| \`${key}\` | ${type.replaceAll("|", "\\|")} | ${other} | ${description} | ${example} |`;
}

test("the table of keys is the schema's", () => {
  const rows = devloveKeys().map(rowOf).join("\n");
  const table = `| Key | Type | Default | Meaning | Example |\n|---|---|---|---|---|\n${rows}\n`;
  const marked = /(<!-- keys -->\n)[\s\S]*?(?=<!-- \/keys -->)/;
  expect(read("devlove.md")).toMatch(marked);
  expectGenerated("docs/devlove.md", (now) =>
    now.replace(marked, (_all, head: string) => head + table),
  );
});

test("the presets are listed in full", () => {
  const names = PresetSchema.properties.name.enum;
  const lists = names.map((name) => {
    const rules = presetRules({ name }).map((rule) => `  ${JSON.stringify(rule)}`);
    return `\`${name}\`:\n\n<!-- rules -->\n\`\`\`json\n[\n${rules.join(",\n")}\n]\n\`\`\`\n`;
  });
  expect(names.length).toBe(3);
  const marked = /(<!-- presets -->\n)[\s\S]*?(?=<!-- \/presets -->)/;
  expect(read("caching.md")).toMatch(marked);
  expectGenerated("docs/caching.md", (now) =>
    now.replace(marked, (_all, head: string) => `${head}\n${lists.join("\n")}\n`),
  );
});
