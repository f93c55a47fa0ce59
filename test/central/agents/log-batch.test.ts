// What a batch may hold: the largest records there are, and nothing that costs the log thread more than they do.

import { expect, test } from "vitest";
import { decodeBatch } from "../../../src/central/agents/log-batch.ts";
import { requestRecord } from "../../support/request-records.ts";

const read = (...lines: readonly string[]): ReturnType<typeof decodeBatch> =>
  decodeBatch(Buffer.from(lines.map((line) => `${line}\n`).join("")), "identity", 1, lines.length);

test("a record of largest fields is taken, each character escaped", () => {
  const most = (length: number): string => "\u0001".repeat(length);
  const line = JSON.stringify(
    requestRecord(1, {
      uri_path: most(8_192),
      authority: most(512),
      domain: most(253),
      user_agent: most(1_024),
      bot: most(255),
      client_ip: most(64),
      verdict: most(64),
      request_method: most(64),
    }),
  );
  expect(line.length).toBeGreaterThan(60_000);
  expect(read(line)).toMatchObject({ kind: "batch", records: [{ seq: 1, line }] });
});

test.for<[string, string, string]>([
  [
    "of thousands of fields",
    JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, no) => [`f${no}`, no]))),
    "a line has at most 131072 characters",
  ],
  ["of blanks", `{${" ".repeat(200_000)}}`, "a line has at most 131072 characters"],
])("a line %s is refused unread", ([, line, why]) => {
  expect(read(JSON.stringify(requestRecord(1)), line)).toEqual({
    kind: "invalid",
    message: `line 2: ${why}`,
  });
});

test("a refusal is short, whatever a field is called", () => {
  const refused = read(JSON.stringify({ ...requestRecord(1), ["k".repeat(50_000)]: 1 }));
  expect(refused).toMatchObject({ kind: "invalid" });
  expect(JSON.stringify(refused).length).toBeLessThan(400);
});

test("a line that is no UTF-8 is looked for among as many as a batch may have", () => {
  const bytes = Buffer.concat([Buffer.alloc(1_000_000, "\n"), Buffer.from([0xff])]);
  expect(decodeBatch(bytes, "identity", 1, 1)).toEqual({
    kind: "invalid",
    message: "line 2001: no JSON in UTF-8",
  });
});
