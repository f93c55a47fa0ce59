// What is told to a central of an older release, member by member.

import { expect, test } from "vitest";
import { messageAsTaken, reportAsTaken } from "../../../src/agent/link/as-taken.ts";
import { sha256Of } from "../../../src/core/ids.ts";
import { decodeReport, type Report } from "../../../src/wire/channel.ts";
import { centralTakes, readCentralTakes, type Position } from "../../../src/wire/position.ts";
import { reportOf } from "../../support/fake-agent.ts";

const position: Position = {
  epoch: null,
  applied_seq: 0,
  chain: sha256Of(""),
  oldest_unfinished: null,
};
const backend = { requests: 0, errors: 0, latency_buckets: {}, reachable: true };
const counted = { made: 4, blocked: 1 };
const today = { ...counted, since: "2031-05-06T07:00:00.000Z", day: "2031-05-06" };
const domain = { domain: "a.example", backend, unreviewed_bots: [] };
const report: Report = {
  ...reportOf("instance-1", 0),
  position,
  host_name: "edge-7",
  domains: [{ ...domain, variants: { ...counted, today } }, domain],
};
const { position: _, host_name: __, ...without } = report;

test.each<[string | undefined, unknown]>([
  [centralTakes, report],
  ["variant-days", without],
  ["position", { ...without, position, domains: [{ ...domain, variants: counted }, domain] }],
  ["variant-days, host-name", { ...without, host_name: "edge-7" }],
  // The release before took these.
  ["position, variant-days", { ...without, position }],
  [undefined, { ...without, domains: [{ ...domain, variants: counted }, domain] }],
])("to a central that takes %s", (header, told) => {
  const takes = readCentralTakes(header);
  expect(reportAsTaken(report, takes)).toEqual(told);
  expect(messageAsTaken({ type: "report", report }, takes)).toEqual({
    type: "report",
    report: told,
  });
  expect(decodeReport(told).ok).toBe(true);
});

test("a receipt goes without its position, and everything else as it is", () => {
  const takes = readCentralTakes(undefined);
  const receipt = { seq: 1, phase: "applied", detail: {}, took_ms: 1 } as const;
  const told = messageAsTaken({ type: "receipt", receipt, position }, takes);
  expect(told).toEqual({ type: "receipt", receipt });
  expect(messageAsTaken({ type: "ping", n: 1 }, takes)).toEqual({ type: "ping", n: 1 });
});
