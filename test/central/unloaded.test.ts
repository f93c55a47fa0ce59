// A central loads nothing of what its settings do not name, PostgreSQL and S3: neither its start nor its memory pays for it.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { node } from "../support/process.ts";

const root = join(import.meta.dirname, "../..");

/** How many modules of a package are loaded after these files. */
function loadedOf(pack: string, files: readonly string[]): unknown {
  const script = `
    const { createRequire } = await import("node:module");
    for (const file of ${JSON.stringify(files)}) await import(file);
    const { cache } = createRequire(import.meta.url);
    console.log(JSON.stringify(Object.keys(cache).filter((path) => path.includes("/node_modules/${pack}")).length));
  `;
  const args = ["--input-type=module", "--eval", script];
  return JSON.parse(execFileSync(node, args, { cwd: root, encoding: "utf8" }));
}

test.each([
  ["pg", "./src/central/store/engine/postgres-store.ts", 5],
  ["@aws-sdk", "./src/central/store/objects/bucket.ts", 3],
])(
  "central's parts load no module of %s; what needs it does",
  (pack, needsIt, least) => {
    expect(loadedOf(pack, ["./src/central/main.ts", "./src/central/parts.ts"])).toBe(0);
    expect(loadedOf(pack, [needsIt])).toBeGreaterThan(least);
  },
  60_000,
);
