// The rules of the house as tests: who may import whom, where packages may be used, sizes, purity, no dead file, true documents.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { expectedSkips, provided } from "./expected-skips.ts";
import { findings, type SourceFile } from "./support/tidy.ts";
import { tempDir } from "./support/temp-dir.ts";

const root = join(import.meta.dirname, "..");

/** What git tracks or would track: the tree as it will be cloned. */
function readTree(from: string): readonly SourceFile[] {
  const listed = execFileSync(
    "git",
    ["ls-files", "-co", "--exclude-standard", "src", "test", "bench"],
    { cwd: from, encoding: "utf8" },
  );
  return listed
    .split("\n")
    .filter((path) => path.endsWith(".ts") && existsSync(join(from, path)))
    .map((path) => ({ path, text: readFileSync(join(from, path), "utf8") }));
}

test("the tree keeps the rules of the house", () => {
  expect(findings(readTree(root))).toEqual([]);
});

test("enough files were looked at", () => {
  expect(readTree(root).length).toBeGreaterThan(120);
});

test("every path named in ARCHITECTURE.md exists, and it is at most 300 lines", () => {
  const text = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
  const named = [
    ...text.matchAll(/`((?:src|test|bench|config|systemd|docs|scripts|\.ci)\/[^`\s*<>{}]*)`/g),
  ].map((match) => match[1] ?? "");
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  expect(named.length).toBeGreaterThan(15);
  expect(text.split("\n").length).toBeLessThanOrEqual(300);
  expect(text).not.toMatch(/\.ts:\d+/);
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
  const all = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  })
    .split("\n")
    .filter(
      (path) =>
        path !== "" &&
        path !== "package-lock.json" &&
        existsSync(join(root, path)) &&
        !/\.(?:png|ico)$/.test(path),
    );
  const foreign = /\/wor[k]\/|registry\.npmj[s]/;
  expect(all.filter((path) => foreign.test(readFileSync(join(root, path), "utf8")))).toEqual([]);
});

// Each rule must be able to fail: a planted offence is found, and named.
const plants: readonly { readonly rule: string; readonly path: string; readonly text: string }[] = [
  {
    rule: "import",
    path: "src/agent/bots/planted.ts",
    text: '// Planted.\nimport { x } from "../cache/store.ts";\nexport const y = x;\n',
  },
  {
    rule: "import",
    path: "src/agent/link/planted.ts",
    text: '// Planted.\nimport { x } from "../../central/main.ts";\nexport const y = x;\n',
  },
  {
    rule: "import",
    path: "src/core/planted.ts",
    text: '// Planted.\nimport { readFileSync } from "node:fs";\nexport const y = readFileSync;\n',
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

test.each(plants)("a planted offence against `$rule` in $path is found", ({ rule, path, text }) => {
  const found = findings([...readTree(root), { path, text }]);
  expect(found.some((finding) => finding.startsWith(`${rule}: ${path}`))).toBe(true);
});

test("a planted file on disk is seen", () => {
  using dir = tempDir();
  execFileSync("git", ["init", "-q", dir.path]);
  mkdirSync(join(dir.path, dirname("src/core/x.ts")), { recursive: true });
  writeFileSync(join(dir.path, "src/core/x.ts"), "export const y = 1;\n");
  expect(readTree(dir.path).map(({ path }) => path)).toEqual(["src/core/x.ts"]);
});
