// One command runs every test. System tests spawn both programs, so files run with bounded parallelism on small machines.

import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 120_000,
    hookTimeout: 300_000,
    // A test that asserts nothing cannot fail.
    expect: { requireAssertions: true },
    pool: "forks",
    maxWorkers: 2,
    reporters: ["default"],
  },
});
