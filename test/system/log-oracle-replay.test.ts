// The log of a real site, replayed through a bad network, kills of central and restarts of the agent, arrives line for line.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readAccessLog } from "../support/access-log.ts";
import { replay } from "../support/log-oracle-replay.ts";

const logPath = join(
  import.meta.dirname,
  "../../../shared/data/logs/semicomplete_apache_combined_10k.log",
);
/** Of its 10,000: one visitor after the other takes a while. LOG_ORACLE_LINES sets another number. */
const linesMax = Number(process.env["LOG_ORACLE_LINES"] ?? 500);

test.skipIf(!existsSync(logPath))(
  `a real log arrives line for line (needs ${logPath})`,
  async () => {
    const lines = readAccessLog(logPath).slice(0, linesMax);
    const { records, gaps, faults, restarts } = await replay(lines, 7);
    expect(gaps).toEqual([]);
    expect(restarts).toBe(3);
    expect(faults).toBeGreaterThan(3);
    const asReplayed = lines.map(({ method, target, ip, userAgent }) => ({
      request_method: method,
      uri_path: target,
      client_ip: ip,
      user_agent: userAgent ?? null,
    }));
    expect(
      records.map(({ request_method, uri_path, client_ip, user_agent }) => ({
        request_method,
        uri_path,
        client_ip,
        user_agent,
      })),
    ).toEqual(asReplayed);
  },
  900_000,
);
