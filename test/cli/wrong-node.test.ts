// A Node that is too old, or that does not start, is told in one sentence by every command, before anything else is read or run.

import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { builtTree } from "../support/built-tree.ts";
import { mainFile, node } from "../support/process.ts";
import { tempDir } from "../support/temp-dir.ts";

const root = join(import.meta.dirname, "../..");
const packageText = readFileSync(join(root, "package.json"), "utf8");
const { engines, scripts } = JSON.parse(packageText) as {
  readonly engines: { readonly node: string };
  readonly scripts: Readonly<Record<string, string>>;
};
const needed = /^>=(\d+\.\d+)$/.exec(engines.node)?.[1] ?? "";
const [neededMajor = 0, neededMinor = 0] = needed.split(".").map(Number);

const inSources = join(root, "src/main.ts");
/** CI has built the program already. */
let built = mainFile;
let tree: Disposable | undefined;
beforeAll(() => {
  if (mainFile === inSources) {
    const own = builtTree();
    [built, tree] = [own.main, own];
  }
  return () => tree?.[Symbol.dispose]();
}, 400_000);

/** Every command of both programs, as their help lists them. */
const commands = ["agent", "central"].flatMap((program) => {
  const { stdout } = spawnSync(node, [inSources, program, "--help"], { encoding: "utf8" });
  const named = [...stdout.matchAll(/^ {2}(\w+) {2}/gm)].map(([, name]) => [program, name ?? ""]);
  return [...named, [program, "--help"], [program]];
});

test("commands were found", () => {
  expect(commands.length).toBeGreaterThan(20);
  expect(neededMajor).toBeGreaterThanOrEqual(26);
});

const sentence = (version: string): RegExp =>
  new RegExp(
    `^accel-agent and accel-central need Node ${RegExp.escape(needed)} or later; \\S+ is v${RegExp.escape(version)}\\.\\n$`,
  );

const firstLineOf = (command: string): string | undefined =>
  spawnSync(command, ["--version"], { encoding: "utf8" }).stdout?.trim();

/** What is at hand: the machine's own, and those that CI fetches, which know neither `.ts` nor the syntax of today. */
const real = [
  ...(process.env["PATH"] ?? "").split(delimiter).map((dir) => join(dir, "node")),
  ...["18", "20", "22"].map((v) => join(root, `var/old-nodes/${v}/node_modules/.bin/node`)),
]
  .filter((file) => existsSync(file))
  .map((file) => ({ file, version: firstLineOf(file)?.slice(1) ?? "" }))
  .filter(({ version }) => /^\d/.test(version) && Number.parseInt(version, 10) < neededMajor);

describe.each([18, 20, 22])("a real Node %i", (major) => {
  const found = real.find(({ version }) => Number.parseInt(version, 10) === major);
  const hint = `npm install --prefix var/old-nodes/${major} node@${major}`;
  test.skipIf(found === undefined).each(["src", "dist"])(`is refused by %s (${hint})`, (where) => {
    const { file, version } = found ?? { file: "", version: "" };
    const main = where === "src" ? inSources : built;
    for (const args of [[], ...commands]) {
      const { status, stdout, stderr } = spawnSync(file, [main, ...args], { encoding: "utf8" });
      expect({ args, status, stdout, stderr }).toEqual({
        args,
        status: 1,
        stdout: "",
        stderr: expect.stringMatching(sentence(version)),
      });
    }
  });
});

/** Preloaded: this Node calls itself another, and says which modules it loads. */
const pretender = `
const { registerHooks } = require("node:module");
const { basename } = require("node:path");
const node = process.env.PRETENDED;
Object.defineProperty(process, "versions", { value: { ...process.versions, node } });
Object.defineProperty(process, "version", { value: "v" + node });
registerHooks({ load: (url, context, next) => (process.stdout.write(basename(url) + "\\n"), next(url, context)) });
`;

describe.each(["src", "dist"])("%s, by a Node that calls itself another", (where) => {
  const begin = (version: string) => {
    using dir = tempDir();
    writeFileSync(join(dir.path, "pretend.cjs"), pretender);
    const main = where === "src" ? inSources : built;
    return spawnSync(node, ["--require", join(dir.path, "pretend.cjs"), main, "agent", "version"], {
      encoding: "utf8",
      env: { ...process.env, PRETENDED: version },
    });
  };
  const own = where === "src" ? "main.ts\n" : "main.js\n";

  test.each([
    "12.22.12",
    "18.20.8",
    "22.23.3",
    `${neededMajor - 1}.9.9`,
    `${neededMajor}.${neededMinor - 1}.9`,
  ])("%s is refused, and nothing but the first file was loaded", (version) => {
    const { status, stdout, stderr } = begin(version);
    expect({ status, stdout, stderr }).toEqual({
      status: 1,
      stdout: own,
      stderr: expect.stringMatching(sentence(version)),
    });
  });

  test.each([`${needed}.0`, `${neededMajor}.${neededMinor + 1}.0`, "100.1.0"])(
    "%s is not",
    (version) => {
      const { status, stdout, stderr } = begin(version);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(stdout).toMatch(/\naccel-agent \d+\.\d+\.\d+\n$/);
    },
  );
});

describe("the commands of package.json, where the pinned Node does not start", () => {
  const named = Object.keys(scripts).filter((name) => scripts[`pre${name}`] !== undefined);

  test("each of them looks first", () => {
    const first = new Set(Object.keys(scripts).filter((name) => scripts[name.slice(3)]));
    expect(named.toSorted()).toEqual(
      Object.keys(scripts)
        .filter((name) => !first.has(name))
        .toSorted(),
    );
    expect(new Set([...first].map((name) => scripts[name])).size).toBe(1);
  });

  /** A clone whose `node_modules` are complete and whose Node is this script. */
  const runs = (command: string, stub: string) => {
    using dir = tempDir();
    const bin = join(dir.path, "node_modules/.bin");
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(dir.path, "package.json"), packageText);
    cpSync(join(root, "scripts"), join(dir.path, "scripts"), { recursive: true });
    for (const name of ["package-lock.json", "node_modules/.package-lock.json"])
      writeFileSync(join(dir.path, name), '{ "packages": {} }');
    writeFileSync(join(bin, "node"), stub);
    chmodSync(join(bin, "node"), 0o755);
    const { status, stdout, stderr } = spawnSync(
      "npm",
      ["run", "--silent", "--offline", command, "--", "--help"],
      {
        cwd: dir.path,
        encoding: "utf8",
        // As from a shell: what `npm test` has set for its own children is not there.
        env: { PATH: `${dirname(node)}${delimiter}${process.env["PATH"] ?? ""}`, HOME: dir.path },
      },
    );
    return { isFailed: status !== 0, stdout, stderr };
  };

  const failing = (said: string): string => `#!/bin/sh\necho '${said}' >&2\nexit 127\n`;

  test.each(named)("npm run %s names the Debian package that it lacks", (name) => {
    const words =
      "node: error while loading shared libraries: libatomic.so.1: cannot open shared object file: No such file or directory";
    expect(runs(name, failing(words))).toEqual({
      isFailed: true,
      stdout: "",
      stderr: `accel-agent: Node ${needed} or later is needed, and the one in node_modules does not start without libatomic.so.1: install the Debian package libatomic1 (apt-get install libatomic1).\n`,
    });
  });

  test("another library is named, and other words are passed on", () => {
    const before = `accel-agent: Node ${needed} or later is needed, and the one in node_modules does not start`;
    const lacking =
      "node: error while loading shared libraries: libz.so.9: cannot open shared object file: x";
    expect(runs("start", failing(lacking)).stderr).toBe(`${before} without libz.so.9.\n`);
    expect(runs("start", failing("Illegal instruction")).stderr).toBe(
      `${before}: Illegal instruction\n`,
    );
  });
});
