// `npm run bench [-- NAME [OPTIONS]]`: each benchmark prints ratios against a real peer or the bare limit, measured in one run.

import { readdirSync } from "node:fs";
import { basename, join } from "node:path";

type Bench = {
  readonly run: (say: (line: string) => void, args: readonly string[]) => Promise<void>;
};

// An end by a signal is an exit like any other: what benchmarks started ends with them.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

const names = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(".bench.ts"))
  .map((file) => basename(file, ".bench.ts"))
  .sort();
const [asked, ...args] = process.argv.slice(2);
if (asked === "--help") {
  process.stdout.write(
    `npm run bench [-- NAME [OPTIONS]]\n\n${names.join("\n")}\n\nWhat one measures, and its options, stand at the head of bench/NAME.bench.ts.\n`,
  );
  process.exit(0);
}
const chosen = asked === undefined ? names : names.filter((name) => name === asked);
if (chosen.length === 0) {
  process.stderr.write(`no benchmark ${asked}; there are: ${names.join(", ")}\n`);
  process.exit(2);
}
for (const name of chosen) {
  process.stdout.write(`${name}\n`);
  // The directory listing above says that it is there, and the type what a benchmark file exports.
  const { run } = (await import(join(import.meta.dirname, `${name}.bench.ts`))) as Bench;
  await run((line) => process.stdout.write(`  ${line}\n`), args);
}
