// Central killed at each sync of its commits: mark and records are there together, or neither is.

import { expect, test } from "vitest";
import { runKillsInCommits } from "../support/log-oracle-commits.ts";
import { straceHint, straceMissing } from "../support/log-oracle-disk.ts";

test.skipIf(straceMissing)(
  `killed in a commit: nothing is lost, nothing comes twice (${straceHint})`,
  async () => {
    const { unexplained, records, missing, kills } = await runKillsInCommits({});
    expect(unexplained).toEqual([]);
    expect(missing).toBe(0);
    expect(records).toBeGreaterThan(kills);
  },
  600_000,
);
