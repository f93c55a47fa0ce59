// Makes ready what the commands of package.json run on: the locked dependencies, installed when they are missing or older than the lock file, and among them
// the pinned Node, which must start here. Runs on the Node that npm itself runs on, for the pinned one may not exist yet.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const pinned = join(root, "node_modules/.bin/node");
const shell = process.platform === "win32";
const read = (path) => JSON.parse(readFileSync(join(root, path), "utf8"));

/** npm leaves a hidden lock file that tells what it installed; optional packages of other platforms are absent there. */
function installed() {
  if (!existsSync(join(root, "node_modules/.package-lock.json")) || !existsSync(pinned))
    return false;
  const have = read("node_modules/.package-lock.json").packages;
  return Object.entries(read("package-lock.json").packages).every(
    ([path, wanted]) =>
      path === "" ||
      have[path]?.version === wanted.version ||
      (have[path] === undefined && wanted.optional === true),
  );
}

function install() {
  process.stderr.write("accel-agent: installing dependencies (once) …\n");
  // Not `npm ci`: it refuses a lock file that lacks native bindings of platforms other than the one it was made on. With --no-save the lock
  // file still decides every version and is left as it is. Engine warnings of the machine's own Node do not concern the pinned one.
  const args = ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"];
  const run = () => spawnSync("npm", args, { cwd: root, stdio: ["ignore", 2, 2], shell }).status;
  // Two attempts: a registry that hiccups must not cost the first impression.
  return run() === 0 || run() === 0
    ? undefined
    : "npm install failed: is the package registry reachable?";
}

/** Debian's packages of the libraries that Node's own builds for Linux load. */
const packageOf = { "libatomic.so.1": "libatomic1", "libstdc++.so.6": "libstdc++6" };

/** Why the pinned Node does not start here, in one sentence; undefined when it does. */
function runtimeFault() {
  const needed = `Node ${/[\d.]+/.exec(read("package.json").engines.node)} or later is needed`;
  if (!existsSync(pinned))
    return `${needed}, and the package \`node\` brought none: allow its install script, remove node_modules and try again.`;
  const { stdout, stderr, error, status } = spawnSync(pinned, ["--version"], {
    encoding: "utf8",
    shell,
  });
  if (status === 0 && /^v\d+/.test(stdout)) return undefined;
  const said = String(error?.message ?? stderr).trim();
  const [, library] = /([\w+.-]+\.so[\w.]*): cannot open shared object file/.exec(said) ?? [];
  if (library === undefined)
    return `${needed}, and the one in node_modules does not start: ${said.split("\n")[0]}`;
  const cure = packageOf[library];
  return `${needed}, and the one in node_modules does not start without ${library}${
    cure === undefined ? "." : `: install the Debian package ${cure} (apt-get install ${cure}).`
  }`;
}

/** The console, for programs that run from their sources: built where a source is newer than what lies there. */
function consoleFault() {
  const out = join(root, "var/console");
  const page = join(out, "index.html");
  const newest = (path) =>
    statSync(path).isDirectory()
      ? Math.max(...readdirSync(path).map((name) => newest(join(path, name))))
      : statSync(path).mtimeMs;
  const sources = ["src/console", "src/core", "package-lock.json", "scripts/build-console.mjs"];
  const newestSource = Math.max(...sources.map((path) => newest(join(root, path))));
  if (existsSync(page) && statSync(page).mtimeMs > newestSource) return undefined;
  const args = [join(root, "scripts/build-console.mjs"), out];
  const { status } = spawnSync(pinned, args, { cwd: root, stdio: ["ignore", 2, 2], shell });
  return status === 0 ? undefined : "the console could not be built; see above.";
}

const fault = (installed() ? undefined : install()) ?? runtimeFault() ?? consoleFault();
if (fault !== undefined) {
  process.stderr.write(`accel-agent: ${fault}\n`);
  process.exitCode = 1;
}
