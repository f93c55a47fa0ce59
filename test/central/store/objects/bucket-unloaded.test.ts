// A central whose blobs lie in its state directory loads nothing of S3: neither its start nor its memory pays for what it does not use.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { node } from "../../../support/process.ts";

const root = join(import.meta.dirname, "../../../..");

/** The modules of the SDK that are loaded after these. */
function loadedAfter(...files: readonly string[]): unknown {
  const script = `
    const { createRequire } = await import("node:module");
    for (const file of ${JSON.stringify(files)}) await import(file);
    const { cache } = createRequire(import.meta.url);
    console.log(JSON.stringify(Object.keys(cache).filter((path) => path.includes("/node_modules/@aws-sdk")).length));
  `;
  const args = ["--input-type=module", "--eval", script];
  return JSON.parse(execFileSync(node, args, { cwd: root, encoding: "utf8" }));
}

test("central's parts load no module of the SDK; the bucket does", () => {
  expect(loadedAfter("./src/central/main.ts", "./src/central/parts.ts")).toBe(0);
  expect(loadedAfter("./src/central/store/objects/bucket.ts")).toBeGreaterThan(3);
}, 60_000);
