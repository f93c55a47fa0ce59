// One command runs every test. System tests spawn both programs, so files run with bounded parallelism on small machines.

import { defineConfig } from "vitest/config";

/** Tests of pure functions: there is no state that one file could leave to the next, so they share a process and its modules. */
const pure = ["core", "wire", "console"].map((folder) => `test/${folder}/**/*.test.ts`);

export default defineConfig({
  test: {
    testTimeout: 120_000,
    hookTimeout: 300_000,
    // A test that asserts nothing cannot fail.
    expect: { requireAssertions: true },
    pool: "forks",
    maxWorkers: 2,
    reporters: ["default"],
    projects: [
      { extends: true, test: { name: "pure", include: pure, isolate: false } },
      { extends: true, test: { name: "apart", include: ["test/**/*.test.ts"], exclude: pure } },
    ],
  },
});
