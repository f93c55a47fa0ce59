// `npm run generate`: writes the files of the tree that are made from its sources, by the tests that hold them equal to what they are made of.

import { spawnSync } from "node:child_process";
import { generatingTests } from "./generating-tests.mjs";

const env = { ...process.env, UPDATE_CONFIG: "1" };
const args = ["run", "--reporter=dot", ...generatingTests()];
const run = spawnSync("vitest", args, { env, encoding: "utf8", maxBuffer: 2 ** 28 });
process.exitCode = run.status ?? 1;
if (process.exitCode !== 0) process.stdout.write(`${run.error ?? ""}${run.stdout}${run.stderr}`);
else process.stdout.write("Written. `git status` shows what has changed.\n");
