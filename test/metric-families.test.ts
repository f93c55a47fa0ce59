// Metrics in the documents: the tables are those of the sources, and no page names a metric that is not there.

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { expectGenerated } from "./support/generated.ts";
import {
  declaringFiles,
  meaningTable,
  readFamilies,
  sourceTables,
  type Family,
} from "./support/metric-families.ts";

const root = join(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const families = await readFamilies();
const pages = globSync(["docs/**/*.md", "*.md"], { cwd: root }).filter(
  (path) => path !== "CHANGELOG.md",
);

test("every table of metrics is exported, so that the documents have it", () => {
  const read = new Set(families.map(({ declaredIn }) => declaredIn));
  expect(declaringFiles.filter((path) => !read.has(path))).toEqual([]);
  expect(declaringFiles.length).toBeGreaterThan(20);
});

test("every metric has a sentence that says what it is, and is counted somewhere", () => {
  const told = ({ help }: Family): boolean => /^\S.*\.$/.test(help) && !help.includes("|");
  expect(families.filter((family) => !told(family)).map(({ name }) => name)).toEqual([]);
  const idle = families.filter(({ usedIn }) => usedIn.length === 0);
  expect(idle.map(({ name }) => name)).toEqual([]);
});

test("docs/internals/metrics.md has all of them", () => {
  const marked = /(<!-- sources -->\n)[\s\S]*?(?=<!-- \/sources -->)/;
  expect(read("docs/internals/metrics.md")).toMatch(marked);
  expectGenerated("docs/internals/metrics.md", (now) =>
    now.replace(marked, (_all, head: string) => `${head}\n${sourceTables(families)}\n`),
  );
});

/** Names with `*` for any run of characters, of which each means some metric. */
function meant(patterns: string): readonly Family[] {
  const found = patterns.split(" ").map((pattern) => {
    const name = new RegExp(`^${pattern.replaceAll("*", ".*")}$`);
    return families.filter((family) => name.test(family.name));
  });
  for (const some of found) expect(some, patterns).not.toEqual([]);
  return families.filter((family) => found.flat().includes(family));
}

test("the tables for operators say what the sources say", () => {
  const marked = /(<!-- metrics: ([^\n]*) -->\n)[\s\S]*?(?=<!-- \/metrics -->)/g;
  const having = pages.filter((path) => read(path).includes("<!-- metrics: "));
  expect(having.length).toBeGreaterThan(4);
  for (const path of having)
    expectGenerated(path, (now) =>
      now.replaceAll(
        marked,
        (_all, head: string, patterns: string) => head + meaningTable(meant(patterns)),
      ),
    );
});

test("a page names no metric that is not there", () => {
  const known = new Set(families.map(({ name }) => name));
  // hacking.md walks through the adding of one; a name with a star is a pattern of several.
  const plain = pages.filter((path) => path !== "docs/internals/hacking.md");
  const named = plain.flatMap((path) =>
    [...read(path).matchAll(/\baccel_(?:agent|central)_[a-z0-9_]+(?![a-z0-9_*])/g)].map(
      ([name]) => ({
        path,
        name,
      }),
    ),
  );
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter(({ name }) => !known.has(name))).toEqual([]);
});
