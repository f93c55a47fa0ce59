// Problems that visitors can cause are logged once a period, with how many were left out.

import { expect, test } from "vitest";
import { ProblemLog } from "../../../../src/agent/accelerator/records/problem-log.ts";
import { silentLog, type Log } from "../../../../src/base/log.ts";

function setUp() {
  const lines: unknown[] = [];
  const time = { ms: 0 };
  const line = (level: string) => (facts: object, text: string) =>
    void lines.push([level, text, facts]);
  const log: Log = Object.assign(Object.create(silentLog()), {
    warn: line("warn"),
    error: line("error"),
  });
  const problems = new ProblemLog(log, () => time.ms);
  return { problems, lines, time };
}

test("one line a problem, domain and level in ten seconds; the next one says how many there were", () => {
  const { problems, lines, time } = setUp();
  const fault = new Error("reset");
  for (let i = 0; i < 5; i++) problems.tell("warn", "a.example", "answer cut", fault);
  problems.tell("warn", "b.example", "answer cut", fault);
  problems.tell("error", "a.example", "answer cut", fault);
  problems.tell("warn", "a.example", "answer failed", fault);
  const said = (level: string, domain: string, text: string, leftOut: number) => [
    level,
    text,
    { domain, err: fault, leftOut },
  ];
  const first = [
    said("warn", "a.example", "answer cut", 0),
    said("warn", "b.example", "answer cut", 0),
    said("error", "a.example", "answer cut", 0),
    said("warn", "a.example", "answer failed", 0),
  ];
  expect(lines).toEqual(first);
  time.ms = 9_999;
  problems.tell("warn", "a.example", "answer cut", fault);
  expect(lines).toEqual(first);
  time.ms = 10_000;
  problems.tell("warn", "a.example", "answer cut", fault);
  problems.tell("warn", "b.example", "answer cut", fault);
  expect(lines.slice(4)).toEqual([
    said("warn", "a.example", "answer cut", 5),
    said("warn", "b.example", "answer cut", 0),
  ]);
});

test("a thousand problems are remembered, the one told last the longest", () => {
  const { problems, lines } = setUp();
  const tell = (no: number): void => problems.tell("warn", `d${no}.example`, "answer cut", "x");
  for (let no = 0; no < 1_000; no++) tell(no);
  tell(0);
  expect(lines.length).toBe(1_000);
  tell(1_000); // The first is forgotten.
  tell(1);
  tell(999);
  expect(lines.length).toBe(1_001);
  tell(0);
  expect(lines.length).toBe(1_002);
});
