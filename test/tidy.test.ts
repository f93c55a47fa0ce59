// The rules of the house as tests: who may import whom, where packages may be used, sizes, purity, no dead file, true documents.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { expectedSkips, provided } from "./expected-skips.ts";
import { messageOf } from "../src/core/faults.ts";
import { findings } from "./support/tidy.ts";
import type { SourceFile } from "./support/tidy-text.ts";
import { tempDir } from "./support/temp-dir.ts";

const root = join(import.meta.dirname, "..");

/** Every path that git tracks or would track: the tree as it will be cloned. */
function listTree(from: string): readonly string[] {
  return execFileSync("git", ["ls-files", "-co", "--exclude-standard"], {
    cwd: from,
    encoding: "utf8",
  })
    .split("\n")
    .filter((path) => path !== "" && existsSync(join(from, path)));
}

/** The sources, and the pages for who reads them. */
function readTree(from: string): readonly SourceFile[] {
  return listTree(from)
    .filter((path) => /^(?:src|test|bench)\/.*\.tsx?$|\.md$/.test(path))
    .map((path) => ({ path, text: readFileSync(join(from, path), "utf8") }));
}

const tree = listTree(root);
const sources = readTree(root);

test("the tree keeps the rules of the house", () => {
  expect(findings(sources, tree)).toEqual([]);
});

// The programs are started from their sources too, and Node's own reader takes less than the compiler does: no variable of the name `of` in a loop, for one.
test("Node itself can read every source", () => {
  const unread = sources
    .filter(({ path }) => path.endsWith(".ts"))
    .flatMap(({ path, text }) => {
      try {
        stripTypeScriptTypes(text);
        return [];
      } catch (error) {
        return [`${path}: ${messageOf(error)}`];
      }
    });
  expect(unread).toEqual([]);
});

test("enough files were looked at", () => {
  expect(sources.length).toBeGreaterThan(1_000);
});

// Else the first to learn of a skip would be a CI that lacks something.
test("a file whose tests may skip says what CI brings for it, or why CI may skip them too", () => {
  const skips = /\b(?:test|it|describe)(?:\.\w+)*\.(?:skip|skipIf|runIf|todo)\b|\bits\.skip\(/;
  const told = new Set([...Object.keys(provided), ...expectedSkips.map(({ file }) => file)]);
  const found = readTree(root)
    .filter(({ path, text }) => /^test\/(?!run\.).*\.test\.ts$/.test(path) && skips.test(text))
    .map(({ path }) => path);
  expect(found.length).toBeGreaterThan(20);
  expect(found.filter((path) => !told.has(path))).toEqual([]);
  // The store's tests skip where they are imported.
  expect([...told].filter((path) => !found.includes(path) && !path.includes("/postgres-"))).toEqual(
    [],
  );
});

test("nothing in the tree names the place where it was written", () => {
  const foreign = /\/wor[k]\/|registry\.npmj[s]/;
  const all = listTree(root).filter(
    (path) => path !== "package-lock.json" && !/\.(?:png|ico)$/.test(path),
  );
  expect(all.filter((path) => foreign.test(readFileSync(join(root, path), "utf8")))).toEqual([]);
});

type Plant = {
  readonly rule: string;
  readonly path: string;
  readonly text: string;
  /** Other files that the offence needs. */
  readonly beside?: readonly SourceFile[];
  /** What the finding is about, where that is not the file itself. */
  readonly about?: string;
  /** What the finding names. */
  readonly says?: string;
};

/** In two pieces: a test that names a port fakes it. */
const unfaked = ["Planted", "Port"].join("");

const importing = (target: string): string =>
  `// Planted.\nimport { x } from "${target}";\nexport const planted = x;\n`;
const importingType = (target: string): string =>
  `// Planted.\nimport type { X } from "${target}";\nexport type Planted = X;\n`;

/** An import that goes up or across, one for each room that could. */
const upward: readonly (readonly [path: string, target: string])[] = [
  ["src/core/planted.ts", "../base/log.ts"],
  ["src/core/http/planted.ts", "../../wire/parts.ts"],
  ["src/wire/planted.ts", "../base/log.ts"],
  ["src/base/planted.ts", "../agent/main.ts"],
  ["src/client/planted.ts", "../cli/text.ts"],
  ["src/cli/planted.ts", "../agent/link/link.ts"],
  ["src/demo/planted.ts", "../central/main.ts"],
  ["src/agent/link/planted.ts", "../../central/main.ts"],
  ["src/agent/link/planted.ts", "../viewset/viewsets.ts"],
  ["src/agent/link/planted.ts", "../main.ts"],
  ["src/agent/bots/sets/planted.ts", "../../cache/entry.ts"],
  ["src/agent/cache/planted.ts", "../accelerator/pipeline.ts"],
  ["src/agent/accelerator/doors/planted.ts", "../../steering/appliers.ts"],
  ["src/agent/viewset/planted.ts", "../accelerator/pipeline.ts"],
  ["src/agent/steering/planted.ts", "../admin/status.ts"],
  ["src/agent/settings/planted.ts", "../link/link.ts"],
  ["src/central/store/journal/planted.ts", "../../api/resources.ts"],
  ["src/central/agents/planted.ts", "../api/resources.ts"],
  ["src/central/mail/planted.ts", "../jobs/x.ts"],
  ["src/central/store/planted.ts", "../../agent/link/link.ts"],
  ["src/console/planted.tsx", "../base/log.ts"],
  ["src/console/planted.tsx", "../wire/parts.ts"],
  ["src/central/api/planted.ts", "../../console/words.ts"],
];

// Each rule must be able to fail: a planted offence is found, and named.
const plants: readonly Plant[] = [
  ...upward.map(([path, target]) => ({ rule: "import", path, text: importing(target) })),
  {
    rule: "import",
    path: "src/core/planted.ts",
    text: '// Planted.\nimport { readFileSync } from "node:fs";\nexport const y = readFileSync;\n',
  },
  {
    rule: "circle",
    path: "src/agent/link/planted.ts",
    text: importingType("./returned.ts"),
    beside: [{ path: "src/agent/link/returned.ts", text: importingType("./planted.ts") }],
    says: "src/agent/link/returned.ts",
  },
  {
    rule: "circle",
    path: "src/central/api/a-planted.ts",
    text: importing("./http/b-planted.ts"),
    beside: [
      { path: "src/central/api/http/b-planted.ts", text: importing("../c-planted.ts") },
      { path: "src/central/api/c-planted.ts", text: importingType("./a-planted.ts") },
    ],
    says: "src/central/api/http/b-planted.ts",
  },
  {
    rule: "name",
    path: "src/agent/bots/a-planted.ts",
    text: "// Planted.\nexport type Planted = 1;\n",
    beside: [
      { path: "src/central/mail/planted.ts", text: "// Planted.\nexport class Planted {}\n" },
    ],
    says: "Planted",
  },
  {
    rule: "port",
    path: "src/agent/bots/planted.ts",
    text: `// Planted.\nexport type ${unfaked} = {\n  readPlanted(at: number): string;\n  writePlanted(at: number): Promise<void>;\n};\n`,
    beside: [
      {
        path: "src/agent/link/planted.ts",
        text: '// Planted.\nexport class Planted {\n  readPlanted(at: number): string {\n    return "";\n  }\n\n  async writePlanted(at: number): Promise<void> {}\n}\n',
      },
    ],
    says: unfaked,
  },
  {
    rule: "folder",
    path: "src/agent/planted/eleventh.ts",
    text: "// Planted.\n",
    beside: Array.from({ length: 10 }, (_, at) => ({
      path: `src/agent/planted/f${at}.ts`,
      text: "// Planted.\n",
    })),
    about: "src/agent/planted",
    says: "README.md",
  },
  {
    rule: "folder",
    path: "src/agent/planted/README.md",
    text: "# Planted\n\n**What it is.** x\n\n**Thread.** x\n\n**Read first.** x\n",
    beside: Array.from({ length: 11 }, (_, at) => ({
      path: `src/agent/planted/f${at}.ts`,
      text: "// Planted.\n",
    })),
    says: "Never",
  },
  {
    rule: "walk",
    path: "docs/internals/planted.md",
    text: "# A walk\n\n1. `src/agent/gone.ts` answers.\n",
    says: "src/agent/gone.ts",
  },
  {
    rule: "walk",
    path: "docs/internals/planted.md",
    text: "# A walk\n\n1. `src/agent/main.ts` `answerNobody`: answers.\n",
    says: "answerNobody",
  },
  { rule: "walk", path: "src/agent/planted/README.md", text: "`gone.ts`\n", says: "gone.ts" },
  { rule: "walk", path: "CONTRIBUTING.md", text: "`src/main.ts:12`\n", says: "src/main.ts:12" },
  {
    rule: "decision",
    path: "docs/internals/decisions/0999-planted.md",
    text: "# Planted\n\n2026-11-30\n\n## Context\n\n## Decision\n",
    says: "Rejected",
  },
  {
    rule: "package",
    path: "src/agent/bots/planted.ts",
    text: '// Planted.\nimport { WebSocket } from "ws";\nexport const y = WebSocket;\n',
  },
  {
    rule: "pure",
    path: "src/core/planted.ts",
    text: "// Planted.\nexport const y = (): number => Date.now();\n",
  },
  {
    rule: "lines",
    path: "src/core/planted.ts",
    text: `// Planted.\n${"export {};\n".repeat(501)}`,
  },
  {
    rule: "function",
    path: "src/core/planted.ts",
    text: `// Planted.\nexport function long(): void {\n${"  void 0;\n".repeat(75)}}\n`,
  },
  { rule: "dead", path: "src/core/planted.ts", text: "// Planted.\nexport const y = 1;\n" },
  { rule: "head", path: "src/core/planted.ts", text: "export const y = 1;\n" },
  {
    rule: "process",
    path: "src/agent/bots/planted.ts",
    text: "// Planted.\nexport const y = process.env;\n",
  },
  {
    rule: "fixme",
    path: "src/core/planted.ts",
    text: `// Planted. ${["FIX", "ME"].join("")} later.\nexport const y = 1;\n`,
  },
];

test.each(plants)(
  "a planted offence against `$rule` in $path is found",
  ({ rule, path, text, beside = [], about = path, says = "" }) => {
    const others = sources.filter((file) => file.path !== path);
    const files = [...others, ...beside];
    const found = findings([...files, { path, text }], tree);
    const named = found.filter((finding) => finding.startsWith(`${rule}: ${about}`));
    expect(named.join("\n")).toContain(`${rule}: ${about}`);
    expect(named.join("\n")).toContain(says);
    // The tree as it is has no findings at all: the first test says so.
    if (files.length === sources.length) return;
    expect(findings(files, tree).filter((one) => named.includes(one))).toEqual([]);
  },
);

test("a planted file on disk is seen", () => {
  using dir = tempDir();
  execFileSync("git", ["init", "-q", dir.path]);
  mkdirSync(join(dir.path, dirname("src/core/x.ts")), { recursive: true });
  writeFileSync(join(dir.path, "src/core/x.ts"), "export const y = 1;\n");
  expect(readTree(dir.path).map(({ path }) => path)).toEqual(["src/core/x.ts"]);
});
