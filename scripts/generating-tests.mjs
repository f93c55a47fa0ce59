// The tests that hold a file of the tree equal to what it is made of. With UPDATE_CONFIG they write it.

import { globSync, readFileSync } from "node:fs";

export function generatingTests() {
  return globSync("test/**/*.test.ts").filter((file) =>
    readFileSync(file, "utf8").includes("support/generated.ts"),
  );
}
