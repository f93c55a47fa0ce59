// A minute of what `npm run bench -- outside` does for longer: everything that both programs say, compared from outside with what was sent, while an agent and
// central are restarted and another agent is killed.

import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { outsideLog, runOutside } from "../support/outside-run.ts";
import { prometheusHint, prometheusMissing } from "../support/prometheus.ts";

const said: string[] = [];

test.skipIf(prometheusMissing || !existsSync(outsideLog))(
  `statuses, metrics, receipts and logs say what was sent (${prometheusHint}; and the access log beside the project)`,
  { timeout: 600_000 },
  async () => {
    const options = { lengthMs: 60_000, cycleMs: 8_000, requestsPerSecond: 25, seed: 7 };
    const { comparisons, differences, unanswered, requests } = await runOutside(options, (line) =>
      said.push(line),
    );
    expect(differences).toEqual([]);
    expect(unanswered).toBe(0);
    expect(requests).toBeGreaterThan(500);
    expect(comparisons).toBeGreaterThan(100);
    expect(said).toEqual(expect.arrayContaining(["a3 is killed and started …"]));
  },
);
