// The database of request logs is away for 20 s under visitors and clears, through the real programs: central steers and says so, records wait at the hosts, and
// afterwards each is there once.

import { expect, test } from "vitest";
import { runLogEngineAway } from "../support/log-engine-away.ts";
import { postgresBin } from "../support/postgres-server.ts";

const bin = postgresBin();
const perSecond = 40;

test.skipIf(bin === undefined)(
  "the database of request logs away under load",
  { timeout: 900_000 },
  async () => {
    const seen = await runLogEngineAway({
      bin: bin ?? "",
      awayMs: 20_000,
      perSecond,
      clearEveryMs: 1_000,
    });
    // Central is ready all the time, and each clear was proved by both hosts.
    expect(seen.health).toMatchObject({ wrong: {}, right: seen.health.sent });
    expect(seen.orders.filter(({ isWhileAway }) => isWhileAway).length).toBeGreaterThan(1);
    for (const { sent, right, wrong } of seen.visitors)
      expect({ right, wrong }).toEqual({ right: sent, wrong: {} });

    // Whoever asks for logs is told to come again; operators are told what is away.
    expect(seen.asked.length).toBe(6);
    for (const { status, headers, body } of seen.asked) {
      expect({ status, body }).toMatchObject({
        status: 503,
        body: { status: 503, title: "Service Unavailable", detail: expect.any(String) },
      });
      expect(headers.get("content-type")).toBe("application/problem+json");
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    }
    expect(seen.told.warnings).toMatchObject([{ code: "logs_unreachable", severity: "error" }]);
    expect(seen.told.statusText).toMatch(/logs_unreachable \(error\)/);
    expect(seen.told.statusText).toMatch(
      /logs +how much is kept is not known now; not stored: .*\/logs does not answer/,
    );
    expect(seen.told.metrics).toMatch(/^accel_central_log_failing 1$/m);
    expect(seen.told.metrics).toContain('code="logs_unreachable",severity="error"} 1');

    // What was accepted in that time waited, and is there once.
    expect(seen.spooled.most).toBeGreaterThan(seen.spooled.before + perSecond * 20);
    expect(seen.violations).toEqual([]);
    for (const { accepted, committed, dropped, unproven } of seen.agents)
      expect({ committed, dropped, unproven }).toEqual({
        committed: accepted,
        dropped: 0,
        unproven: 0,
      });
    expect(seen.stored.marks).toBe(seen.agents.reduce((sum, { accepted }) => sum + accepted, 0));
    // Beside the visitors one looked at the page of each host.
    const sent = seen.visitors.reduce((sum, one) => sum + one.sent, seen.visitors.length);
    const retried = seen.visitors.reduce((sum, one) => sum + one.retried, 0);
    expect(seen.stored.visits).toBeGreaterThanOrEqual(sent);
    expect(seen.stored.visits).toBeLessThanOrEqual(sent + retried);
    expect(seen.counted.analytics).toBe(seen.counted.records);
  },
);
