// A small run of what `npm run bench -- leaks` does a million times: random applications, visitors and rules through the real programs, and an oracle that knows whom each byte
// was made for. `npm run bench -- leaks-bugs` plants the faults that such a run has to catch.

import { expect, test } from "vitest";
import { huntLeaks } from "../support/leaks-run.ts";

const answers = 20_000;

test(
  `${answers} answers of random applications reach nobody whom they were not made for`,
  { timeout: 600_000 },
  async () => {
    const said: string[] = [];
    const result = await huntLeaks({ answers, seed: 7 }, (line) => said.push(line));
    expect({ leaks: result.leaks, mangled: result.mangled }, said.join("\n")).toEqual({
      leaks: [],
      mangled: [],
    });
    expect(result.unanswered, said.join("\n")).toBe(0);
    expect(result.answers).toBeGreaterThanOrEqual(answers);
    // Where nothing is stored, nothing can leak.
    for (const [kind, { hits }] of result.byKind)
      expect(hits, `hits of ${kind}`).toBeGreaterThan(100);
    expect(result.editions).toBeGreaterThan(4);
  },
);
