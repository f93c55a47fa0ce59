// `npm run build`: `dist/`, runnable by plain Node 24 and later.
//
// One file for the program, one for each of its threads, and what several of them share; all in one directory, so that `entryUrl` finds a thread's file
// from whatever file the call ended up in. Dependencies are bundled as well: each of eight threads would otherwise read a thousand files at its start.

import { chmodSync, cpSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { build } from "rolldown";

const program = "src/start/program.ts";

/** Native code, and what starts threads from files of its own. */
const external = ["better-sqlite3", "pino"];
const threadNamed = /\bentryUrl\(import\.meta\.url, "(.+?)"\)/g;

const threads = globSync("src/{agent,central}/**/*.ts").flatMap((file) =>
  Array.from(readFileSync(file, "utf8").matchAll(threadNamed), ([, name]) =>
    join(dirname(file), `${name}.ts`),
  ),
);
const entries = [program, ...threads].map((file) => [basename(file, ".ts"), file]);
if (new Set(entries.map(([name]) => name)).size !== entries.length)
  throw new Error(`two threads of one name: ${threads.join(", ")}`);

rmSync("dist", { recursive: true, force: true });
await build({
  input: Object.fromEntries(entries),
  platform: "node",
  external,
  output: {
    dir: "dist",
    format: "esm",
    sourcemap: true,
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
  },
  logLevel: "warn",
});
cpSync("src/demo/site", "dist/site", { recursive: true });

// What begins both programs is JavaScript for any Node, which a bundler might change: taken as it is.
const main = readFileSync("src/main.ts", "utf8");
const built = main.replace('"./start/program.ts"', '"./program.js"');
if (built === main) throw new Error("src/main.ts imports src/start/program.ts no longer");
writeFileSync("dist/main.js", built);
chmodSync("dist/main.js", 0o755);
