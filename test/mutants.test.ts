// The bench that plants mutants, on a project of a few functions: it has to tell a killed one from a survivor, an equivalent one and one that hangs.

import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { areaOf, areas } from "../bench/mutants/areas.ts";
import { Deep } from "../bench/mutants/deep.ts";
import { mutantsOf } from "../bench/mutants/find-mutants.ts";
import { apply, sample } from "../bench/mutants/mutant.ts";
import { named, namedMutant } from "../bench/mutants/named.ts";
import { parseOptions, type Options } from "../bench/mutants/options.ts";
import { readResult } from "../bench/mutants/results.ts";
import { runMutants } from "../bench/mutants/run.ts";
import { runTests } from "../bench/mutants/test-run.ts";
import { trackedFiles, Tree } from "../bench/mutants/tree.ts";
import { tempDir } from "./support/temp-dir.ts";
import { until } from "./support/until.ts";

const root = join(import.meta.dirname, "..");
const file = "src/core/bounds.ts";
const ownTest = "test/core/bounds.test.ts";

const bounds = `export const isLess = (a: number, b: number): boolean => a < b;
export const isMore = (a: number, b: number): boolean => a > b;
export const larger = (a: number, b: number): number => pick(a >= b, a, b);
export const told: string[] = [];
const pick = (isFirst: boolean, a: number, b: number): number => [b, a][Number(isFirst)] ?? a;
export function tell(word: string): void {
  told.push(word);
}
`;

/** Of the first function a program of its own is asked, which would go on for ever. */
const boundsTest = `import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { isMore, larger, tell } from "../../src/core/bounds.ts";
test("in a process", async () => {
  const bounds = JSON.stringify(import.meta.resolve("../../src/core/bounds.ts"));
  const source = "import(" + bounds + ").then(({ isLess }) => { console.log(isLess(1, 1), isLess(0, 1)); setInterval(() => {}, 1_000); })";
  const child = spawn(process.execPath, ["-e", source], { detached: true, stdio: ["ignore", "pipe", "inherit"] });
  const [said] = await once(child.stdout, "data");
  expect(String(said)).toBe("false true\\n");
  child.kill();
  await once(child, "exit");
});
test("here", () => {
  tell("nobody asks");
  expect([isMore(2, 1), isMore(1, 2), larger(1, 2), larger(2, 1)]).toEqual([true, false, 2, 2]);
});
`;

const larger = {
  file,
  within: "larger",
  line: "export const larger = (a: number, b: number): number => pick(a >= b, a, b);",
  change: "a >= b → a > b",
  reason: "Of two equal numbers either is the larger.",
};

function project(path: string, files: Readonly<Record<string, string>>): void {
  const all = {
    "package.json": '{"type":"module"}',
    "tsconfig.json": readFileSync(join(root, "tsconfig.json"), "utf8"),
    ".gitignore": "node_modules\nvar/\n",
    ...files,
  };
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  symlinkSync(join(root, "node_modules"), join(path, "node_modules"));
  execFileSync("git", ["init", "-q", path]);
}

function optionsOf(...args: readonly string[]): Options {
  const options = parseOptions(args);
  if (typeof options === "string") throw new Error(options);
  return options;
}

describe("a run", () => {
  test("tells what came of each planted mutant, and leaves the sources as they were", async () => {
    using dir = tempDir();
    project(dir.path, { [file]: bounds, [ownTest]: boundsTest });
    const said: string[] = [];
    const repository = { root: dir.path, equivalents: [larger], named: [] };
    const missed = await runMutants(repository, optionsOf("--only", file), (line) => {
      said.push(line);
    });
    const results = join(dir.path, "var/mutants");
    const judged = readResult(results, "only");
    const outcomes = new Map(judged?.mutants.map(({ name, outcome }) => [name.change, outcome]));
    expect(outcomes.get("a < b → a <= b")).toMatchObject({ kind: "killed", test: "in a process" });
    expect(outcomes.get("a > b → a >= b")).toEqual({ kind: "survived", ran: 1, related: 1 });
    expect(outcomes.get("told.push(word); → nothing")?.kind).toBe("survived");
    expect(outcomes.get("a >= b → a > b")).toEqual({ kind: "equivalent", reason: larger.reason });
    expect(judged).toMatchObject({ killed: 1, survived: 2, equivalent: 1, share: 1 / 3 });
    expect(missed).toEqual(["only: 33.3 % killed, at least 85 % wanted"]);
    expect(said.join("\n")).toContain(`${file}:2 [boundary] in isMore: a > b → a >= b`);
    expect(readFileSync(join(dir.path, file), "utf8")).toBe(bounds);
    expect(readdirSync(results).sort()).toEqual(["map", "only.json"]);

    // A test that sees it, and only those that survived are tried again; the other stays. Both folders by their whole paths.
    const seeing =
      'import { expect, test } from "vitest"; import { isMore } from "../../src/core/bounds.ts"; test("equal", () => expect(isMore(1, 1)).toBe(false));';
    writeFileSync(join(dir.path, "test/core/equal.test.ts"), seeing);
    const folders = ["--dir", results, "--map", join(results, "map")];
    const again = optionsOf("--only", file, "--survivors", ...folders);
    expect(await runMutants(repository, again, () => {})).toEqual([
      "only: 66.7 % killed, at least 85 % wanted",
    ]);
    expect(readResult(results, "only")?.mutants.length).toBe(4);
  });

  test("takes no kill from a test that fails without a mutant as well", async () => {
    using dir = tempDir();
    const red =
      'import { test } from "vitest"; import "../../src/core/bounds.ts"; test("red", () => { throw new Error("always"); });';
    project(dir.path, { [file]: bounds, [ownTest]: red });
    const repository = { root: dir.path, equivalents: [], named: [] };
    await runMutants(repository, optionsOf("--only", file), () => {});
    const result = readResult(join(dir.path, "var/mutants"), "only");
    expect(result).toMatchObject({ killed: 0, survived: 4 });
  });

  test("drops what the compiler refuses", async () => {
    using dir = tempDir();
    const text =
      "export const word = (a: number[]): number[] =>\n  a.length === 0 ? [0] : a.filter(Number);\nexport const only = (a: 1): number => a;\nexport const one = only(\n  1,\n);\n";
    const loads =
      'import { expect, test } from "vitest"; import { one } from "../../src/core/bounds.ts"; test("loads", () => expect(one).toBeGreaterThan(0));';
    project(dir.path, { [file]: text, [ownTest]: loads });
    const repository = { root: dir.path, equivalents: [], named: [] };
    await runMutants(repository, optionsOf("--only", file), () => {});
    const result = readResult(join(dir.path, "var/mutants"), "only");
    expect(result).toMatchObject({ killed: 0, survived: 1, refused: 1 });
  });
});

test("the deep benches run on the mutated tree; one that is not green without a mutant finds nothing", async () => {
  using dir = tempDir();
  // `model` sees the mutant in the sources beside it, `clear-kill` always fails.
  const benches = `import { readFileSync } from "node:fs";
const isMutated = readFileSync("${file}", "utf8").includes("a <= b");
process.exit(process.argv[2] === "clear-kill" || (isMutated && process.env.MODEL_STEPS !== undefined) ? 1 : 0);`;
  project(dir.path, { [file]: bounds, "bench/run.ts": benches });
  using tree = new Tree(dir.path, join(dir.path, "var/tree"));
  const deep = new Deep(tree);
  const [seen, unseen] = ["a < b → a <= b", "a > b → a >= b"].map((change) =>
    mutantsOf(file, bounds).find(({ name }) => name.change === change),
  );
  if (seen === undefined || unseen === undefined) throw new Error("they are there");
  expect(await deep.foundBy("cache", seen)).toEqual(["model"]);
  expect(await deep.foundBy("cache", unseen)).toEqual([]);
  expect(tree.text(file)).toBe(bounds);
});

describe("a test run", () => {
  test("ends at the deadline of a file, with everything that it started", async () => {
    using dir = tempDir();
    const pidFile = join(dir.path, "pid");
    const spinning = `import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { test } from "vitest";
test("spins", () => {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1_000)"], { detached: true, stdio: "ignore" });
  writeFileSync(${JSON.stringify(pidFile)}, String(child.pid));
  for (;;) {}
});`;
    project(dir.path, { [ownTest]: spinning });
    const { verdict } = await runTests(dir.path, [{ file: ownTest, msMax: 3_000 }]);
    expect(verdict).toEqual({ kind: "hung", file: ownTest });
    const pid = readFileSync(pidFile, "utf8");
    await until("it has ended", () => !existsSync(`/proc/${pid}`) || isZombie(pid));
  });
});

function isZombie(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return true;
  }
}

describe("mutants of a text", () => {
  const changes = (text: string): readonly string[] =>
    mutantsOf(file, text).map(({ name }) => name.change);

  test.each([
    ["x = a <= b;", "a <= b → a < b"],
    ["x = a === b;", "a === b → a !== b"],
    ["x = a - b;", "a - b → a + b"],
    ["x = a && b;", "a && b → a || b"],
    ["x = true;", "true → false"],
    ["const waitMs = 1_000;", "1_000 → 1000000"],
    ["x = a[0];", "0 → 1"],
    ["if (a) b();", "a → !(a)"],
    ["if (a) throw b;", "a → false"],
    ["f(a);", "f(a); → nothing"],
    ["await f(a);", "await f(a); → void f(a);"],
    ["x = a.filter(b);", "a.filter(b) → a"],
    ["x = Math.min(a, b);", "Math.min(a, b) → Math.max(a, b)"],
    ["db.transaction(f).immediate();", "db.transaction(f).immediate() → (f)()"],
    ["await db.transaction().execute(f);", "db.transaction().execute(f) → (f)(db)"],
    ['q("SELECT a WHERE b >= ?");', '"SELECT a WHERE b >= ?" → "SELECT a WHERE b > ?"'],
    ['q.on("a", "<", b);', 'q.on("a", "<", b) → q.on("a", "<=", b)'],
  ])("of `%s`: %s", (text, change) => {
    expect(changes(text)).toContain(change);
  });

  test("types, imports, keys and the prose of logs have none", () => {
    const text =
      'import { a } from "./a.ts"; type T = 1 | true; const x: 2 = y as 2; log.info({ n: 10 }, "a"); const o = { 5: z };';
    expect(changes(text)).toEqual([]);
  });

  test("what every object has is nothing that is swapped", () => {
    expect(changes('const x = a.toString("utf8"), y = f("constructor", "valueOf");')).toEqual([]);
  });

  test("all of the repository are programs still, and each has a name of its own", () => {
    const path = "src/agent/link/ledger.ts";
    const text = readFileSync(join(root, path), "utf8");
    const mutants = mutantsOf(path, text);
    for (const { edit } of mutants) mutantsOf(path, apply(text, edit));
    expect(new Set(mutants.map(({ name }) => JSON.stringify(name))).size).toBe(mutants.length);
    expect(mutants.length).toBeGreaterThan(20);
  });

  test("a sample stays what it is when other lines are edited", () => {
    const text = readFileSync(join(root, "src/agent/link/ledger.ts"), "utf8");
    const namesOf = (edited: string): readonly string[] =>
      sample(mutantsOf(file, edited), 3, 10).map(({ name }) => JSON.stringify(name));
    expect(namesOf(`// One line more.\n${text}`)).toEqual(namesOf(text));
  });

  test("a named one has to stand there once", () => {
    const row = { title: "t", file, from: "a > b", to: "a < b" };
    expect(apply(bounds, namedMutant(row, bounds).edit)).toContain(
      "=> a < b;\nexport const larger",
    );
    expect(() => namedMutant({ ...row, from: "a = b" }, bounds)).toThrow("no longer");
    expect(() => namedMutant({ ...row, from: "a" }, bounds)).toThrow("more than once");
  });
});

test("every named mutant still has its place", () => {
  for (const row of named) namedMutant(row, readFileSync(join(root, row.file), "utf8"));
  expect(new Set(named.map(({ title }) => title)).size).toBe(named.length);
});

test("every file of the programs belongs to an area, but for the demo's", () => {
  expect(
    [
      "src/main.ts",
      "src/new/a.ts",
      "src/agent/main.ts",
      "src/agent/link/a.ts",
      "src/demo/a.ts",
    ].map(areaOf),
  ).toEqual(["base", "base", "steering", "link", undefined]);
  const files = trackedFiles(root, "src").filter((path) => path.endsWith(".ts"));
  expect(new Set(files.map(areaOf))).toEqual(new Set([...areas, undefined]));
});
