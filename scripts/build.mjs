// `npm run build [-- DIRECTORY]`: `dist/`, runnable by plain Node 26.10 and later.
//
// One file for the program with its commands, and one for each thread, all in one directory, so that `entryUrl` finds a thread's file from whatever file the call
// ended up in. Dependencies are bundled as well: each of eight threads would otherwise read a thousand files at its start. A thread's file holds only what that
// thread imports, for V8 keeps the text of every file that a thread loads, once for each thread.

import { chmodSync, cpSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { build } from "rolldown";
import { buildConsole } from "./build-console.mjs";
import { smallCrawlers, usedUndici, withPlainHttp } from "./build-lighter.mjs";

const program = "src/start/program.ts";

/** What the npm package depends on is not in the bundle: native code, and what starts threads from files of its own. */
const { dependencies, optionalDependencies } = JSON.parse(readFileSync("package.json", "utf8"));
const external = Object.keys({ ...dependencies, ...optionalDependencies });
const threadNamed = /\bentryUrl\(import\.meta\.url, "(.+?)"\)/g;

const threads = globSync("src/{agent,central}/**/*.ts").flatMap((file) =>
  Array.from(readFileSync(file, "utf8").matchAll(threadNamed), ([, name]) =>
    join(dirname(file), `${name}.ts`),
  ),
);
const entries = [program, ...threads];
if (new Set(entries.map((file) => basename(file))).size !== entries.length)
  throw new Error(`two threads of one name: ${threads.join(", ")}`);

/** What these load when it is needed is in files of its own: the program its commands, a worker its client for origins over TLS. */
const loadsMore = new Set([program, "src/agent/worker.ts"]);

/** Where it is built: a package builds a copy of its own, for two may be made at once. */
const [out = "dist"] = process.argv.slice(2);
rmSync(out, { recursive: true, force: true });
/** The directories of the modules whose code is in the bundle, from the root. */
const bundled = new Set();
const moduleDirectory = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/;

function noteBundled(moduleIds) {
  for (const id of moduleIds) {
    const [found] = moduleDirectory.exec(relative(".", id)) ?? [];
    if (found !== undefined) bundled.add(found);
  }
}

for (const file of entries) {
  const { output } = await build({
    input: { [basename(file, ".ts")]: file },
    platform: "node",
    external,
    plugins: [usedUndici, smallCrawlers],
    output: {
      dir: out,
      format: "esm",
      sourcemap: true,
      entryFileNames: "[name].js",
      chunkFileNames: "[name]-[hash].js",
      codeSplitting: loadsMore.has(file),
      comments: { legal: true, annotation: false, jsdoc: false },
      // One character beyond Latin-1 would double the memory of the whole text. Lines and names stay: a trace is read by people.
      minify: {
        compress: false,
        mangle: false,
        codegen: { removeWhitespace: false, asciiOnly: true, legalComments: "inline" },
      },
    },
    logLevel: "warn",
  });
  for (const { moduleIds = [] } of output) noteBundled(moduleIds);
}
noteBundled(await buildConsole(join(out, "console")));
writeFileSync(join(out, "bundled.json"), `${JSON.stringify([...bundled].toSorted(), null, 2)}\n`);
for (const file of globSync(join(out, "*.js"))) {
  const text = readFileSync(file, "utf8");
  // Names in licences, which are no part of the program.
  const ascii = text.replaceAll(/\/\*[^]*?\*\//g, (comment) =>
    comment.normalize("NFD").replaceAll(/[^\x00-\x7f]/g, ""),
  );
  if (/[^\x00-\x7f]/.test(ascii)) throw new Error(`${file} is not ASCII`);
  writeFileSync(file, withPlainHttp(ascii));
}
cpSync("src/demo/site", join(out, "site"), { recursive: true });

// What begins both programs is JavaScript for any Node, which a bundler might change: taken as it is.
const main = readFileSync("src/main.ts", "utf8");
const built = main.replace('"./start/program.ts"', '"./program.js"');
if (built === main) throw new Error("src/main.ts imports src/start/program.ts no longer");
writeFileSync(join(out, "main.js"), built);
chmodSync(join(out, "main.js"), 0o755);
