// `npm run check`: format, lint and types, tidy, generated files; side by side, all findings shown, within a minute on two cores.

import { spawn } from "node:child_process";
import { generatingTests } from "./generating-tests.mjs";

// The steps share the cores. At its own setting the linter's garbage collector takes a fifth of its time.
process.env.GOGC = "600";

const steps = [
  ["format", "oxfmt", ["--check", "."]],
  // The rules need the types, so the linter names their errors too: tsc would work them out a second time. Each file has the tsconfig.json above it, what runs in browsers its own.
  [
    "lint and types",
    "oxlint",
    [
      "--type-aware",
      "--type-check",
      "--deny-warnings",
      "--report-unused-disable-directives",
      "src",
      "test",
      "bench",
    ],
  ],
  // One process for both, in which each module is loaded once: none of these tests changes what another reads.
  [
    "tidy, generated",
    "vitest",
    ["run", "test/tidy.test.ts", ...generatingTests(), "--no-isolate", "--reporter=dot"],
  ],
];

const results = await Promise.all(
  steps.map(
    ([name, command, args]) =>
      new Promise((resolve) => {
        const began = performance.now();
        const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
        let output = "";
        for (const stream of [child.stdout, child.stderr])
          stream.on("data", (chunk) => (output += chunk));
        child.on("error", (error) => resolve({ name, code: 1, output: String(error), seconds: 0 }));
        child.on("close", (code) =>
          resolve({ name, code, output, seconds: (performance.now() - began) / 1_000 }),
        );
      }),
  ),
);

for (const { name, code, output, seconds } of results) {
  process.stdout.write(`${code === 0 ? "ok  " : "FAIL"} ${name} ${seconds.toFixed(1)} s\n`);
  if (code !== 0) process.stdout.write(`${output.trimEnd()}\n`);
}
process.exitCode = results.every(({ code }) => code === 0) ? 0 : 1;
