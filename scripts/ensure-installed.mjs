// Installs the locked dependencies when they are missing or older than the lock file. Runs on whatever Node the machine has, before the pinned one exists.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const read = (path) => JSON.parse(readFileSync(join(root, path), "utf8")).packages;

/** npm leaves a hidden lock file that tells what it installed; optional packages of other platforms are absent there. */
function installed() {
  if (
    !existsSync(join(root, "node_modules/.package-lock.json")) ||
    !existsSync(join(root, "node_modules/.bin/node"))
  )
    return false;
  const have = read("node_modules/.package-lock.json");
  return Object.entries(read("package-lock.json")).every(
    ([path, wanted]) =>
      path === "" ||
      have[path]?.version === wanted.version ||
      (have[path] === undefined && wanted.optional === true),
  );
}

if (!installed()) {
  process.stderr.write("accel-agent: installing dependencies (once) …\n");
  // Not `npm ci`: it refuses a lock file that lacks native bindings of platforms other than the one it was made on. With --no-save the lock
  // file still decides every version and is left as it is. Engine warnings of the machine's own Node do not concern the pinned one.
  const args = ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"];
  const run = () =>
    spawnSync("npm", args, {
      cwd: root,
      stdio: ["ignore", 2, 2],
      shell: process.platform === "win32",
    }).status;
  // Two attempts: a registry that hiccups must not cost the first impression.
  if (run() !== 0 && run() !== 0) {
    process.stderr.write("accel-agent: npm install failed: is the package registry reachable?\n");
    process.exit(1);
  }
}
