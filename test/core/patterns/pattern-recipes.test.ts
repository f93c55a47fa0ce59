// docs/clear-cache.md is true: each recipe clears what it says and nothing that it says it leaves; and the exact URL of every real path clears that path alone.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { gunzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { openPatternCheck } from "../../../src/base/pattern-check.ts";
import { exactWord } from "../../../src/core/patterns/exact-word.ts";
import { indexedText, type IndexedEntry } from "../../../src/core/patterns/index-schema.ts";
import { patternCharsMax } from "../../../src/core/patterns/pattern-budget.ts";
import {
  directlyIn,
  everything,
  exactPatternOf,
  exactUrl,
  extension,
  parameter,
  tagged,
  under,
} from "../../../src/core/patterns/pattern-recipes.ts";
import { entryOf, TextIndex } from "../../support/text-index.ts";

const patterns = openPatternCheck();
afterAll(() => patterns[Symbol.dispose]());

const document = readFileSync(join(import.meta.dirname, "../../../docs/clear-cache.md"), "utf8");

/** Cells of the rows of the table that has this head. */
function tableRows(head: string): string[][] {
  const lines = document.split("\n");
  const from = lines.findIndex((line) => line.startsWith(head)) + 2;
  const rows = lines.slice(
    from,
    lines.findIndex((line, at) => at >= from && !line.startsWith("|")),
  );
  return rows.map((row) =>
    row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}
const quotedIn = (cell = ""): string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, text = ""]) => text);

const recipes = tableRows("| To clear |").map(([name = "", pattern, clears, leaves]) => ({
  name,
  pattern: quotedIn(pattern)[0] ?? "",
  clears: quotedIn(clears),
  leaves: quotedIn(leaves),
}));
const examples = [...new Set(recipes.flatMap(({ clears, leaves }) => [...clears, ...leaves]))];
const index = new TextIndex(examples.map(entryOf));
afterAll(() => index[Symbol.dispose]());

describe("the table of recipes", () => {
  test("is there", () => {
    expect(recipes.length).toBeGreaterThan(25);
    expect(examples.length).toBeGreaterThan(60);
  });

  test.each(recipes)("$name: $pattern", ({ pattern, clears, leaves }) => {
    expect(patterns.check(pattern)).toBe(undefined);
    const cleared = index.matches(pattern).map((at) => examples[at]);
    expect(clears.length).toBeGreaterThan(0);
    for (const one of clears) expect(cleared).toContain(one);
    for (const one of leaves) expect(cleared).not.toContain(one);
  });

  test("has for everything what clears all of it", () => {
    const last = recipes.at(-1)?.pattern ?? "";
    expect(last).toBe(everything);
    expect(index.matches(last).length).toBe(examples.length);
  });
});

test("the table of columns shows what is indexed", () => {
  const text = indexedText(entryOf("/blog/My%20post.html?page=2 [news, product-7]"));
  const words = text.map((column) =>
    column
      .toLowerCase()
      .match(/[a-z0-9]+/g)
      ?.join(" "),
  );
  const shown = tableRows("| Column |").map(([, , cell]) => quotedIn(cell)[0]);
  expect(shown).toEqual(words);
});

test("the line of JavaScript makes exact words", () => {
  const code = /```js\nconst exactWord = ([^`]*`[^`]*`[^`]*);\n```/.exec(document)?.[1];
  // The document's own line, which is checked here.
  const own = runInNewContext(`(${code})`, { Buffer }) as (text: string) => string;
  for (const text of ["/blog/A-1", "/caf%C3%A9?x=é&z", "路径"])
    expect(own(text)).toBe(exactWord(text));
});

test.each([
  [exactUrl("/blog/post.html"), "url:z2fblogz2fpostz2ehtml"],
  [under("/css/"), "url:z2fcssz2f*"],
  [directlyIn("/css/"), "dir:z2fcssz2f"],
  [extension("png"), "ext:png"],
  [parameter("page=2"), "param:pagez3d2"],
  [tagged("product-7"), "tag:productz2d7"],
])("%s is made as the document has it", (made, documented) => {
  expect(made).toBe(documented);
  expect(document).toContain(`\`${documented}\``);
});

const data = join(import.meta.dirname, "../../../../shared/data/paths");
const files = existsSync(data) ? readdirSync(data).filter((file) => file.endsWith(".gz")) : [];

describe.skipIf(files.length === 0)(
  "the exact URL of every real path clears it and no other",
  () => {
    test.each(files)("in %s", (file) => {
      const lines = gunzipSync(readFileSync(join(data, file)))
        .toString()
        .trim()
        .split("\n");
      const paths = [...new Set(lines.map((line) => line.split("\t").at(-1) ?? ""))];
      // What packages hold are files; what the log holds was asked for with its query. Every path stands there as the other kind would have it, too.
      const entries = paths.flatMap((path): IndexedEntry[] => {
        const file: IndexedEntry = {
          kind: "static",
          path: path.slice(1),
          query: "",
          mime: "text/html",
        };
        return path.includes("?")
          ? [entryOf(path)]
          : [entryOf(path), { ...file, path: `copy${path}` }];
      });
      using whole = new TextIndex(entries);
      const wrong = entries.filter((entry, at) => {
        const pattern = exactPatternOf(entry);
        const found = whole.matches(pattern);
        return found.length !== 1 || found[0] !== at || patterns.check(pattern) !== undefined;
      });
      expect(wrong).toEqual([]);
      expect(entries.length).toBeGreaterThan(1_000);
    });
  },
);

test("a URL too long for a pattern is cleared by its beginning", () => {
  const long = (end: string): IndexedEntry => entryOf(`/${"a/".repeat(2_000)}${end}`);
  using two = new TextIndex([long("x"), long("y"), entryOf("/a/")]);
  const pattern = exactPatternOf(long("x"));
  expect(pattern.length).toBe(patternCharsMax);
  expect(patterns.check(pattern)).toBe(undefined);
  expect(two.matches(pattern)).toEqual([0, 1]);
});
