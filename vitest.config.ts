// One command runs every test. System tests spawn both programs, so few files run at a time.

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
    // One more than small machines have processors: system tests wait for others a third of the time.
    maxWorkers: 3,
    reporters: ["default"],
    projects: [
      { extends: true, test: { name: "pure", include: pure, isolate: false } },
      { extends: true, test: { name: "apart", include: ["test/**/*.test.ts"], exclude: pure } },
    ],
  },
});
