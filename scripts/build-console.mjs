// `node scripts/build-console.mjs DIRECTORY`: the console for browsers, as central serves it: one page, one style, one script, and the script of the shared worker
// that holds the event stream. Names say the content, so browsers may keep the files for ever; each lies there compressed as well, for central compresses nothing.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "rolldown";

const source = "src/console";

/** Builds into `out`, which is emptied first. Returns the ids of the modules whose code is in it. */
export async function buildConsole(out) {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const main = await bundle(`${source}/main.tsx`);
  const worker = await bundle(`${source}/live-worker.ts`);
  const style = `${readFileSync("node_modules/uplot/dist/uPlot.min.css", "utf8")}\n${readFileSync(`${source}/console.css`, "utf8")}`;
  const names = {
    script: put(out, "console", "js", main.code),
    worker: put(out, "live", "js", worker.code),
    style: put(out, "console", "css", style),
  };
  let page = readFileSync(`${source}/index.html`, "utf8");
  for (const [name, file] of Object.entries(names))
    page = page.replace(`{{${name}}}`, `/console/${file}`);
  if (page.includes("{{")) throw new Error(`${source}/index.html names what is not built`);
  write(out, "index.html", page);
  return [
    ...main.moduleIds,
    ...worker.moduleIds,
    join(process.cwd(), "node_modules/uplot/dist/uPlot.min.css"),
  ];
}

async function bundle(input) {
  const { output } = await build({
    input,
    platform: "browser",
    write: false,
    tsconfig: false, // It is for editors and the type-checker; a copy of the sources that is built has none.
    transform: { target: "es2023", jsx: { runtime: "automatic", importSource: "preact" } },
    output: { format: "esm", codeSplitting: false, minify: true, comments: { legal: true } },
    logLevel: "warn",
  });
  if (output.length !== 1) throw new Error(`${input} is more than one file`);
  const [{ code, moduleIds }] = output;
  return { code, moduleIds };
}

function put(out, name, ending, text) {
  const digest = createHash("sha256").update(text).digest("base64url").slice(0, 10);
  const file = `${name}-${digest}.${ending}`;
  write(out, file, text);
  return file;
}

function write(out, file, text) {
  const bytes = Buffer.from(text);
  writeFileSync(join(out, file), bytes);
  writeFileSync(join(out, `${file}.gz`), gzipSync(bytes, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11 };
  writeFileSync(join(out, `${file}.br`), brotliCompressSync(bytes, { params }));
}

if (import.meta.main) {
  const [out] = process.argv.slice(2);
  if (out === undefined) throw new Error("usage: node scripts/build-console.mjs DIRECTORY");
  await buildConsole(out);
}
