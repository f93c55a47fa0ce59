// A line that is written at once says what the record of the same request would.

import { expect, test } from "vitest";
import {
  recordLine,
  seconds,
  targetPart,
  userAgentText,
  visitorPart,
  type LineFacts,
} from "../../../../src/agent/accelerator/records/record-line.ts";
import type { Verdict } from "../../../../src/core/serving/verdict.ts";
import { decodeRequestRecord } from "../../../../src/wire/request-log.ts";
import { createRandom } from "../../../support/outside-random.ts";

const pick = <T>(values: readonly T[], random: () => number): T =>
  values[Math.floor(random() * values.length)] as T;

const urls = ["/", "/a?b=%22%5C", `/${"x".repeat(2_000)}`, "/'!$&()*+,;=:@~"];
const agents = [undefined, "", 'Mozilla/5.0 "quoted" \\ tab\t', "y".repeat(3_000)];
const verdicts: readonly (Verdict | undefined)[] = [
  undefined,
  { kind: "allow", reason: "not-a-bot", bot: null },
  { kind: "block", reason: "bad-set", bot: 'Bad "Bot"\u2028' },
];
const times = [0, 0.0004, 0.001, 1, 999.9995, 12_345.678, 1_764_000_000_123.456, -3];

test("100,000 lines, as a reader takes them", () => {
  const { next } = createRandom(7);
  for (let no = 0; no < 100_000; no++) {
    const facts: LineFacts = {
      connection: no,
      status: pick([200, 304, 403, 499], next),
      method: pick(["GET", "HEAD"], next),
      whenMs: pick(times, next) + next() * 1_000,
      durationMs: pick(times, next) * next(),
      bytesSent: Math.floor(next() * 2 ** 40),
      cache: pick(["hit", "blocked", "none"], next),
    };
    const [url, agent, verdict] = [pick(urls, next), pick(agents, next), pick(verdicts, next)];
    const host = pick(["www.example.com", "h".repeat(600)], next);
    const domain = pick([null, "www.example.com"], next);
    const line = recordLine(
      facts,
      targetPart(url, host, domain),
      visitorPart("192.0.2.1", agent, verdict),
    );
    const record = {
      connection: no,
      response_status: facts.status,
      request_method: facts.method,
      uri_path: url,
      backend_time: 0,
      when: seconds(facts.whenMs),
      authority: host.slice(0, 512),
      domain,
      client_ip: "192.0.2.1",
      bytes_sent: facts.bytesSent,
      duration: seconds(facts.durationMs),
      cache: facts.cache,
      verdict: verdict === undefined ? "none" : `${verdict.kind} ${verdict.reason}`,
      bot: verdict?.bot?.replace("\u2028", " ") ?? null,
      user_agent: userAgentText(agent),
    };
    expect(line).not.toContain("\n");
    const read: unknown = JSON.parse(line);
    if (JSON.stringify(sorted(read)) !== JSON.stringify(sorted(record)))
      expect(read).toEqual(record);
    if (no % 100 === 0) expect(decodeRequestRecord(read)).toMatchObject({ ok: true });
  }
});

function sorted(value: unknown): unknown {
  return Object.entries(value as object).toSorted(([a], [b]) => (a < b ? -1 : 1));
}
