// The checks behind tidy.test.ts, pure over a list of files: findings come out as "<rule>: <path> <what>".

export type SourceFile = { readonly path: string; readonly text: string };

const linesMax = 500;
const functionLinesMax = 70;

/** May only shrink: an entry that is no longer needed is itself a finding. */
const exceptions: Readonly<Record<string, string>> = {};

/** Package → folders or files that may import it. Types alone count too. */
const packages: Readonly<Record<string, readonly string[]>> = {
  "better-sqlite3": ["src/base/"],
  chokidar: ["src/agent/viewset/"],
  "crawler-user-agents": ["src/agent/bots/"],
  "find-my-way": ["src/central/api/"],
  "ipaddr.js": ["src/core/"],
  isbot: ["src/agent/bots/"],
  kysely: ["src/central/"],
  mime: ["src/agent/viewset/", "src/agent/accelerator/", "src/demo/"],
  "node-cron": ["src/central/jobs/", "src/agent/scrub/"],
  nodemailer: ["src/central/mail/"],
  pino: ["src/base/"],
  "prom-client": ["src/base/"],
  typebox: ["src/wire/"],
  undici: [
    "src/base/",
    "src/agent/link/",
    "src/agent/accelerator/",
    "src/client/",
    "src/agent/admin/",
  ],
  ws: ["src/agent/link/", "src/central/agents/"],
  yaml: ["src/base/", "src/demo/"],
};

const pureNodeModules = new Set(["node:crypto", "node:zlib", "node:assert"]);

/** Roots compose; they alone (and the demo) may import across folders. Nothing imports them but `main.ts`, or they are thread entries. */
const isRoot = (path: string): boolean => /^src\/(?:agent|central)\/[^/]+\.ts$/.test(path);
const isEntry = (path: string): boolean =>
  path === "src/main.ts" || (isRoot(path) && !path.endsWith("/main.ts")) || path === "bench/run.ts";
const mayUseProcess = (path: string): boolean =>
  path === "src/main.ts" ||
  isRoot(path) ||
  /^src\/(?:start|base|cli|demo|agent\/admin)\//.test(path);

/** What each room may import, beside itself and what lies below its program: ARCHITECTURE.md has the reasons of each edge. */
const below: Readonly<Record<string, readonly string[]>> = {
  "src/core": [],
  "src/wire": ["src/core"],
  "src/base": ["src/wire", "src/core"],
  "src/client": [],
  "src/cli": ["src/client"],
  "src/demo": ["src/client"],
  "src/start": ["src/cli", "src/demo"],
  "src/agent/settings": [],
  "src/agent/link": ["src/agent/cache"],
  "src/agent/cache": [],
  "src/agent/requests": ["src/agent/link"],
  "src/agent/vault": ["src/agent/link"],
  "src/agent/viewset": ["src/agent/link"],
  "src/agent/bots": ["src/agent/link"],
  "src/agent/scrub": ["src/agent/link", "src/agent/cache"],
  "src/agent/accelerator": ["src/agent/cache", "src/agent/bots", "src/agent/requests"],
  "src/agent/steering": [
    "src/agent/accelerator",
    "src/agent/cache",
    "src/agent/viewset",
    "src/agent/bots",
    "src/agent/vault",
    "src/agent/link",
  ],
  "src/agent/admin": [
    "src/agent/steering",
    "src/agent/link",
    "src/agent/cache",
    "src/agent/bots",
    "src/agent/viewset",
    "src/agent/vault",
    "src/agent/requests",
  ],
  "src/central/settings": [],
  "src/central/judging": [],
  "src/central/store": ["src/central/judging"],
  "src/central/agents": ["src/central/store"],
  "src/central/api": ["src/central/agents", "src/central/store", "src/central/judging"],
  "src/central/mail": ["src/central/store"],
  "src/central/jobs": ["src/central/store", "src/central/mail"],
  "src/central/backup": ["src/central/store"],
};

/** Below every room of both programs, and of whatever speaks to them. */
const ground = ["src/base", "src/wire", "src/core"];

type Import = { readonly target: string; readonly typeOnly: boolean };

/** Static, dynamic and type imports with literal targets; computed ones are banned by the rule `import`. */
export function importsOf(text: string): readonly Import[] {
  const found: Import[] = [];
  for (const match of text.matchAll(
    /^\s*(?:import|export)\s+(type\s)?[^;"'`]*?from\s+"([^"]+)"/gm,
  )) {
    found.push({ target: match[2] ?? "", typeOnly: match[1] !== undefined });
  }
  for (const match of text.matchAll(/^\s*import\s+"([^"]+)"/gm))
    found.push({ target: match[1] ?? "", typeOnly: false });
  for (const match of text.matchAll(/\bimport\(\s*"([^"]+)"/g))
    found.push({ target: match[1] ?? "", typeOnly: false });
  return found;
}

function resolve(from: string, target: string): string {
  const parts = from.split("/").slice(0, -1);
  for (const part of target.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** The import table of ARCHITECTURE.md: undefined where allowed, else why not. */
function forbidden(from: string, to: string): string | undefined {
  if (!from.startsWith("src/")) return undefined; // Tests and benches may import anything.
  if (!to.startsWith("src/")) return "src never imports outside src";
  const folder = (path: string): string =>
    path
      .split("/")
      .slice(0, /^src\/(?:agent|central)\/[^/]+\//.test(path) ? 3 : 2)
      .join("/");
  const [own, other] = [folder(from), folder(to)];
  if (own === other) return undefined;
  if (from === "src/main.ts")
    return to === "src/start/program.ts" ? undefined : "main begins, nothing more";
  if (own === "src/start")
    return /^src\/(?:agent|central)\/main\.ts$|^src\/(?:cli|base|core|demo)\//.test(to)
      ? undefined
      : "start picks a command, nothing more";
  if (isRoot(from)) {
    const program = from.split("/").slice(0, 2).join("/");
    return ["src/base", "src/wire", "src/core"].includes(other) || to.startsWith(`${program}/`)
      ? undefined
      : "a root composes its own program";
  }
  const allowed = new Set(below[own]);
  if (!ground.includes(own)) for (const room of ground) allowed.add(room);
  const [, program] = /^src\/(agent|central)\//.exec(from) ?? [];
  if (program !== undefined && other === `src/${program}/settings`) return undefined;
  return allowed.has(other)
    ? undefined
    : `${own} may import ${[...allowed].join(", ") || "nothing else"}`;
}

function importFindings({ path, text }: SourceFile): readonly string[] {
  const found: string[] = [];
  if (path.startsWith("src/") && /\bimport\(\s*[^"\s)]/.test(stripComments(text)))
    found.push(`import: ${path} has a computed import`);
  for (const { target } of importsOf(text)) {
    if (target.startsWith(".")) {
      const reason = forbidden(path, resolve(path, target));
      if (reason !== undefined) found.push(`import: ${path} imports ${target}: ${reason}`);
    } else if (target.startsWith("node:")) {
      if (/^src\/(?:core|wire)\//.test(path) && !pureNodeModules.has(target))
        found.push(`import: ${path} imports ${target}: core and wire do no I/O`);
    } else if (path.startsWith("src/")) {
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

function stripComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/(^|\s)\/\/.*$/gm, "$1");
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
      lines.slice(at + 1).findIndex((later) => new RegExp(`^${indent}\\}[;,)]*$`).test(later)) + 2;
    if (length > functionLinesMax)
      found.push(
        `function: ${path} ${line.trim().slice(0, 40)} has ${length} lines of at most ${functionLinesMax}`,
      );
  });
  return found;
}

function textFindings({ path, text }: SourceFile): readonly string[] {
  const found: string[] = [];
  const code = stripComments(text);
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
  const used = new Set<string>();
  for (const { path, text } of files)
    for (const { target } of importsOf(text))
      if (target.startsWith(".")) used.add(resolve(path, target));
  const inSource = new Set<string>();
  for (const { path, text } of files)
    if (!path.startsWith("test/"))
      for (const { target } of importsOf(text))
        if (target.startsWith(".")) inSource.add(resolve(path, target));
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

export function findings(files: readonly SourceFile[]): readonly string[] {
  const all = [
    ...files.flatMap((file) => [
      ...importFindings(file),
      ...sizeFindings(file),
      ...textFindings(file),
    ]),
    ...deadFindings(files),
  ];
  const excused = (finding: string): boolean =>
    Object.keys(exceptions).some((excuse) => finding.startsWith(excuse));
  const idle = Object.keys(exceptions).filter(
    (excuse) => !all.some((finding) => finding.startsWith(excuse)),
  );
  return [
    ...all.filter((finding) => !excused(finding)),
    ...idle.map((excuse) => `exception: "${excuse}" is no longer needed`),
  ];
}
