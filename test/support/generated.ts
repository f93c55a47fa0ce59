// Files of the tree that are made from its sources: a test holds them equal, and `npm run generate` writes them by running those tests.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";

const root = join(import.meta.dirname, "../..");

/** Holds the file at `path`, from the root, equal to what is made of it: of what it is now, where only a part is made. */
export function expectGenerated(path: string, make: (now: string) => string): void {
  const file = join(root, path);
  const now = existsSync(file) ? readFileSync(file, "utf8") : "";
  const made = make(now);
  if (process.env["UPDATE_CONFIG"] === "1") writeFileSync(file, made);
  else expect(now, `${path} is written by: npm run generate`).toBe(made);
  expect(made).not.toBe("");
}
