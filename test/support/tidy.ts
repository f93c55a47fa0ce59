// The checks behind tidy.test.ts, pure over a list of files: findings come out as "<rule>: <path> <what>".

import { decisionFindings, folderFindings, pageFindings } from "./tidy-pages.ts";
import {
  circleFindings,
  directionFindings,
  isRoot,
  nameFindings,
  portFindings,
} from "./tidy-rooms.ts";
import { codeOf, importedBy, importsOf, ofFile, type SourceFile } from "./tidy-text.ts";

const linesMax = 500;
const functionLinesMax = 70;
/** In markup each attribute has a line. */
const componentLinesMax = 100;

/** May only shrink: an entry that is no longer needed is itself a finding. */
const exceptions: Readonly<Record<string, string>> = {};

/** Package → folders or files that may import it. Types alone count too. */
const packages: Readonly<Record<string, readonly string[]>> = {
  "@renovatebot/pep440": ["src/core/"],
  "better-sqlite3": ["src/base/"],
  chokidar: ["src/agent/viewset/"],
  "crawler-user-agents": ["src/agent/bots/"],
  "find-my-way": ["src/central/api/"],
  "ipaddr.js": ["src/core/"],
  isbot: ["src/agent/bots/"],
  "@aws-sdk/client-s3": ["src/central/store/objects/"],
  kysely: ["src/central/"],
  sharp: ["src/agent/images/", "src/agent/picturer.ts"],
  mime: ["src/agent/viewset/", "src/agent/accelerator/", "src/demo/"],
  "node-cron": ["src/central/jobs/"],
  nodemailer: ["src/central/mail/"],
  pg: ["src/central/store/engine/"],
  pino: ["src/base/"],
  preact: ["src/console/"],
  "prom-client": ["src/base/"],
  typebox: ["src/wire/", "src/core/serving/"],
  undici: [
    "src/base/",
    "src/agent/link/",
    "src/agent/accelerator/",
    "src/client/",
    "src/agent/admin/",
  ],
  uplot: ["src/console/"],
  ws: ["src/agent/link/", "src/central/agents/"],
  yaml: ["src/base/", "src/demo/"],
};

const pureNodeModules = new Set(["node:crypto", "node:zlib", "node:assert"]);

const isEntry = (path: string): boolean =>
  path === "src/main.ts" ||
  path === "src/console/main.tsx" ||
  path === "src/console/live-worker.ts" ||
  (isRoot(path) && !path.endsWith("/main.ts")) ||
  path === "bench/run.ts";
const mayUseProcess = (path: string): boolean =>
  path === "src/main.ts" ||
  isRoot(path) ||
  /^src\/(?:start|base|cli|demo|agent\/admin)\//.test(path);

/** Computed imports, I/O in pure rooms, and packages outside the rooms that may use them. */
function importFindings(file: SourceFile): readonly string[] {
  const { path } = file;
  const found: string[] = [];
  if (path.startsWith("src/") && /\bimport\(\s*[^"\s)]/.test(codeOf(file)))
    found.push(`import: ${path} has a computed import`);
  for (const { target } of importsOf(file)) {
    if (target.startsWith("node:")) {
      if (/^src\/(?:core|wire)\//.test(path) && !pureNodeModules.has(target))
        found.push(`import: ${path} imports ${target}: core and wire do no I/O`);
    } else if (path.startsWith("src/") && !target.startsWith(".")) {
      const name = target.startsWith("@")
        ? target.split("/").slice(0, 2).join("/")
        : (target.split("/")[0] ?? target);
      const folders = packages[name];
      if (folders === undefined || !folders.some((folder) => path.startsWith(folder)))
        found.push(
          `package: ${path} imports ${name}, allowed in ${folders?.join(", ") ?? "no folder"}`,
        );
    }
  }
  return found;
}

function sizeFindings({ path, text }: SourceFile): readonly string[] {
  const found: string[] = [];
  const lines = text.split("\n");
  if (lines.length - 1 > linesMax)
    found.push(`lines: ${path} has ${lines.length - 1} of at most ${linesMax}`);
  // Formatted code: a function or method begins on a line that ends in `{` and ends at `}` in the same column.
  const begins =
    /^(\s*)(?:export )?(?:async )?(?:function\b|(?:static |override |async |get |set |\*)*[#\w[\].]+\(.*\).*\{$|(?:const|let) \w+ = (?:async )?\(.*=> \{$|[#\w]+\($)/;
  lines.forEach((line, at) => {
    const indent = begins.exec(line)?.[1];
    if (
      indent === undefined ||
      /^\s*(?:if|for|while|switch|return|describe|test|it)\b/.test(line) ||
      !path.startsWith("src/")
    )
      return;
    const length =
      lines
        .slice(at + 1)
        .findIndex((later) => new RegExp(`^${indent}\\}(?:[;,)]*|, \\[.*\\]\\);)$`).test(later)) +
      2;
    const most = path.endsWith(".tsx") ? componentLinesMax : functionLinesMax;
    if (length > most)
      found.push(
        `function: ${path} ${line.trim().slice(0, 40)} has ${length} lines of at most ${most}`,
      );
  });
  return found;
}

function textFindings(file: SourceFile): readonly string[] {
  const { path, text } = file;
  const found: string[] = [];
  const code = codeOf(file);
  if (!/^(?:#!.*\n)?(?:\/\/|\/\*)/.test(text))
    found.push(`head: ${path} does not begin with a comment that says its purpose`);
  if (/\bFIXM[E]\b/.test(text)) found.push(`fixme: ${path}`);
  if (
    path.startsWith("src/core/") &&
    /\bDate\.now\b|new Date\(\)|\bMath\.random\b|\bsetTimeout\b|\bsetInterval\b|\bperformance\.|\bprocess\./.test(
      code,
    )
  ) {
    found.push(`pure: ${path} asks the clock, chance, a timer or the process`);
  }
  if (path.startsWith("src/") && !mayUseProcess(path) && /\bprocess\./.test(code))
    found.push(`process: ${path} uses process outside the roots`);
  return found;
}

/** A file of src that nothing imports and no thread or program starts with; a file of test/support that no test uses. */
function deadFindings(files: readonly SourceFile[]): readonly string[] {
  const used = new Set(files.flatMap(importedBy));
  const inSource = new Set(
    files.filter(({ path }) => !path.startsWith("test/")).flatMap(importedBy),
  );
  return (
    files
      .filter(
        ({ path }) => !path.endsWith(".test.ts") && !isEntry(path) && !path.startsWith("bench/"),
      )
      .filter(({ path }) => !(path.startsWith("src/") ? inSource : used).has(path))
      // What a test preloads into a program it names by file.
      .filter(({ path }) => path.startsWith("src/") || !isNamed(files, path))
      .map(
        ({ path }) =>
          `dead: ${path} is imported by nothing${path.startsWith("src/") ? " but perhaps tests" : ""}`,
      )
  );
}

function isNamed(files: readonly SourceFile[], path: string): boolean {
  const name = JSON.stringify(path.slice(path.lastIndexOf("/") + 1));
  return files.some((other) => other.path !== path && other.text.includes(name));
}

const fileFindings = ofFile((file) => [
  ...importFindings(file),
  ...directionFindings(file),
  ...sizeFindings(file),
  ...textFindings(file),
]);

/** What breaks a rule among sources and pages (`all`), which lie in a tree of the paths `tree`. */
export function findings(all: readonly SourceFile[], tree: readonly string[]): readonly string[] {
  const files = all.filter(({ path }) => /\.tsx?$/.test(path));
  const found = [
    ...files.flatMap(fileFindings),
    ...deadFindings(files),
    ...circleFindings(files),
    ...nameFindings(files),
    ...portFindings(files),
    ...folderFindings(all),
    ...decisionFindings(all),
    ...pageFindings(all, tree),
  ];
  const excused = (finding: string): boolean =>
    Object.keys(exceptions).some((excuse) => finding.startsWith(excuse));
  const idle = Object.keys(exceptions).filter(
    (excuse) => !found.some((finding) => finding.startsWith(excuse)),
  );
  return [
    ...found.filter((finding) => !excused(finding)),
    ...idle.map((excuse) => `exception: "${excuse}" is no longer needed`),
  ];
}
