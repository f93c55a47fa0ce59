// The rules of the rooms behind tidy.test.ts, pure over a list of files: imports point down, no circle, one meaning a name, no port without a second side.

import {
  codeOf,
  importedBy,
  importsOf,
  ofFile,
  resolvePath,
  type SourceFile,
} from "./tidy-text.ts";

/** What each room may import, beside itself and what lies below its program: ARCHITECTURE.md has the reasons of each edge. */
const below: Readonly<Record<string, readonly string[]>> = {
  "src/core": [],
  "src/wire": ["src/core"],
  "src/base": ["src/wire", "src/core"],
  "src/client": [],
  "src/cli": ["src/client"],
  "src/console": ["src/core"],
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
  "src/agent/images": [],
  "src/agent/accelerator": [
    "src/agent/cache",
    "src/agent/bots",
    "src/agent/requests",
    "src/agent/images",
  ],
  "src/agent/doctor": ["src/agent/link"],
  "src/agent/rollout": [],
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
  "src/central/cluster": ["src/central/store"],
  "src/central/agents": ["src/central/cluster", "src/central/store"],
  "src/central/acme": ["src/central/store"],
  "src/central/api": ["src/central/agents", "src/central/store", "src/central/judging"],
  "src/central/mail": ["src/central/store"],
  "src/central/jobs": ["src/central/store", "src/central/mail"],
  "src/central/backup": ["src/central/store"],
};

/** Below every room of both programs, and of whatever speaks to them. */
const ground = ["src/base", "src/wire", "src/core"];

/** Runs in browsers: it imports values from `core` alone, and types from `wire`. */
const browser = "src/console";

/** Roots compose; nothing imports them but `src/start` and the threads that they begin. */
export const isRoot = (path: string): boolean => /^src\/(?:agent|central)\/[^/]+\.ts$/.test(path);

/** The room of a file: a folder of a program with all that lies in it, or a folder of `src`. */
function roomOf(path: string): string {
  return path
    .split("/")
    .slice(0, /^src\/(?:agent|central)\/[^/]+\//.test(path) ? 3 : 2)
    .join("/");
}

/** Why a file may not import another; undefined where it may. */
function forbidden(from: string, to: string, typeOnly: boolean): string | undefined {
  if (!from.startsWith("src/")) return undefined; // Tests and benches may import anything.
  if (!to.startsWith("src/")) return "src never imports outside src";
  if (from === "src/main.ts")
    return to === "src/start/program.ts" ? undefined : "main begins, nothing more";
  const [own, other] = [roomOf(from), roomOf(to)];
  if (isRoot(from)) {
    const program = from.split("/").slice(0, 2).join("/");
    return ground.includes(other) || to.startsWith(`${program}/`)
      ? undefined
      : "a root composes its own program";
  }
  if (own === other) return undefined;
  // Commands beside `run` have roots of their own: an agent that runs would load, and hold in memory, what they alone need.
  if (
    own === "src/start" &&
    /^src\/(?:(?:agent|central)\/main|agent\/(?:join|checking|examining))\.ts$/.test(to)
  )
    return undefined;
  if (own === browser && typeOnly && other === "src/wire") return undefined;
  const allowed = new Set(below[own]);
  if (!ground.includes(own) && own !== browser) for (const room of ground) allowed.add(room);
  const [, program] = /^src\/(agent|central)\//.exec(from) ?? [];
  if (program !== undefined && other === `src/${program}/settings`) return undefined;
  return allowed.has(other)
    ? undefined
    : `${own} may import ${[...allowed].join(", ") || "nothing else"}`;
}

export function directionFindings(file: SourceFile): readonly string[] {
  const { path } = file;
  return importsOf(file)
    .filter(({ target }) => target.startsWith("."))
    .flatMap(({ target, typeOnly }) => {
      const reason = forbidden(path, resolvePath(path, target), typeOnly);
      return reason === undefined ? [] : [`import: ${path} imports ${target}: ${reason}`];
    });
}

/** Files of `src` that import each other, types included: each circle once, named by its first file. After Tarjan (1972). */
export function circleFindings(files: readonly SourceFile[]): readonly string[] {
  const edges = new Map(
    files
      .filter(({ path }) => path.startsWith("src/"))
      .map((file) => [file.path, importedBy(file)]),
  );
  const order = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const found: string[] = [];
  const visit = (path: string): number => {
    const number = order.size;
    order.set(path, number);
    let lowest = number;
    stack.push(path);
    for (const to of edges.get(path) ?? []) {
      if (!edges.has(to)) continue;
      if (!order.has(to)) lowest = Math.min(lowest, visit(to));
      else if (stack.includes(to)) lowest = Math.min(lowest, low.get(to) ?? order.get(to) ?? 0);
      low.set(path, lowest);
    }
    low.set(path, lowest);
    if (lowest === number) {
      const circle = stack.splice(stack.indexOf(path)).toSorted();
      if (circle.length > 1 || (edges.get(path) ?? []).includes(path))
        found.push(`circle: ${circle[0]} and ${circle.slice(1).join(", ")} import each other`);
    }
    return lowest;
  };
  for (const path of edges.keys()) if (!order.has(path)) visit(path);
  return found;
}

const declaring =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|type|interface|enum) (\w+)/gm;

const declared = ofFile(({ text }) => [...text.matchAll(declaring)].map(([, name = ""]) => name));

/**
 * A name that two files of `src` declare and export. Programs' entries are called `main` and `run` by whoever starts them. The console and the programs
 * may use a word each in their own sense, for nothing imports from both.
 */
export function nameFindings(files: readonly SourceFile[]): readonly string[] {
  const ofBrowser = files.filter(({ path }) => path.startsWith(`${browser}/`));
  const shared = files.filter(({ path }) => /^src\/(?:core|wire)\//.test(path));
  const others = files.filter(({ path }) => !path.startsWith(`${browser}/`));
  return [...new Set([...nameTwice(others), ...nameTwice([...ofBrowser, ...shared])])];
}

function nameTwice(files: readonly SourceFile[]): readonly string[] {
  const where = new Map<string, Set<string>>();
  for (const file of files) {
    const { path } = file;
    if (!path.startsWith("src/") || path.startsWith("src/demo/site/")) continue;
    for (const name of declared(file)) where.set(name, (where.get(name) ?? new Set()).add(path));
  }
  return [...where]
    .filter(([, paths]) => paths.size > 1)
    .map(([name, paths]) => {
      const [first, ...others] = [...paths].toSorted();
      return `name: ${first} exports ${name}, and so ${others.length > 1 ? "do" : "does"} ${others.join(", ")}`;
    });
}

type Shape = { readonly path: string; readonly name: string; readonly methods: readonly string[] };

/** Members that are called, of each type or class that begins with the line `opening` matches. Formatted code: members stand two columns in. */
function shapesOf(file: SourceFile, opening: RegExp, member: RegExp): readonly Shape[] {
  const { path } = file;
  const lines = codeOf(file).split("\n");
  return lines.flatMap((line, at) => {
    const name = opening.exec(line)?.[1];
    if (name === undefined) return [];
    const length = lines.slice(at + 1).findIndex((later) => later.startsWith("}"));
    const body = lines.slice(at + 1, at + 1 + length);
    return [{ path, name, methods: body.flatMap((one) => member.exec(one)?.[1] ?? []) }];
  });
}

const classesOf = ofFile((file) =>
  shapesOf(
    file,
    /^(?:export )?(?:abstract )?class (\w+)/,
    /^ {2}(?:readonly |async |static |\*)*(?:get )?(\w+)(?:<.*>)?(?:\(|: \(|: .*=>)/,
  ),
);
const portsOf = ofFile((file) =>
  shapesOf(
    file,
    /^export (?:type (\w+)(?:<.*>)? = \{$|interface \w+)/,
    /^ {2}(?:readonly )?(\w+)\??(?:<.*>)?(?:\(|: (?:<.*>)?\()/,
  ),
);

/**
 * Ports that stand for one thing: an exported type of methods alone or nearly so, which exactly one class of `src` has, and which no test fakes
 * (no file of `test` names it). The class itself is what should be imported. A type whose methods a function's object gives is a callback, and is left alone.
 */
export function portFindings(files: readonly SourceFile[]): readonly string[] {
  const sources = files.filter(({ path }) => path.startsWith("src/"));
  const classes = sources.flatMap(classesOf);
  const ports = sources.flatMap(portsOf);
  const tests = files.filter(({ path }) => path.startsWith("test/") || path.startsWith("bench/"));
  return ports.flatMap(({ path, name, methods }) => {
    if (methods.length < 2) return [];
    const having = classes.filter((one) => methods.every((method) => one.methods.includes(method)));
    const [only] = having;
    if (only === undefined || having.length > 1) return [];
    if (tests.some(({ text }) => new RegExp(`\\b${name}\\b`).test(text))) return [];
    return [`port: ${path} declares ${name}, which ${only.name} of ${only.path} alone is`];
  });
}
