// `npm run build`: `dist/`, runnable by plain Node 24 and later.

import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
const { status } = spawnSync("tsc", ["-p", "tsconfig.build.json"], { stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);
cpSync("src/demo/site", "dist/demo/site", { recursive: true });
chmodSync("dist/main.js", 0o755);
