// What a site, and a rule, say of headers.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  editsInTurn,
  editsOfNotModified,
  requestEditsName,
  withEdits,
  type HeaderEdits,
} from "../../../src/core/http/header-edits.ts";
import type { Field } from "../../../src/core/http/http-fields.ts";

const fields: readonly Field[] = [
  ["Content-Type", "text/html"],
  ["Server", "origin"],
  ["X-Powered-By", "PHP"],
  ["x-powered-by", "ASP"],
];

test.each([
  [{ set: {}, remove: [] }, fields],
  [{ set: {}, remove: ["x-POWERED-by"] }, fields.slice(0, 2)],
  [
    { set: { SERVER: "accel", "X-New": "1" }, remove: [] },
    [fields[0], fields[2], fields[3], ["SERVER", "accel"], ["X-New", "1"]],
  ],
  [
    { set: { Server: "accel" }, remove: ["server", "X-Powered-By"] },
    [fields[0], ["Server", "accel"]],
  ],
] as const)(
  "of %j: what is removed or set goes in any case, then it is set",
  (headers, expected) => {
    expect(withEdits(fields, headers)).toEqual(expected);
  },
);

const name = fc.constantFrom("A", "a", "B", "b", "C", "c", "D");
const someEdits = fc.record({
  set: fc
    .uniqueArray(name, { selector: (one) => one.toLowerCase() })
    .map((names) => Object.fromEntries(names.map((one, at) => [one, `${at}`]))),
  remove: fc.array(name, { maxLength: 3 }),
});
const someFields = fc.array(fc.tuple(name, fc.constantFrom("x", "y")));

test("two edits in turn are as one after the other", () => {
  const apart = (first: HeaderEdits, second: HeaderEdits, all: readonly Field[]) =>
    withEdits(withEdits(all, first), second);
  fc.assert(
    fc.property(someEdits, someEdits, someFields, (first, second, all) => {
      expect(withEdits(all, editsInTurn(first, second))).toEqual(apart(first, second, all));
    }),
  );
});

test("where a rule says nothing, nothing is made for it", () => {
  const second = { set: { A: "1" }, remove: [] };
  expect(editsInTurn({ set: {}, remove: [] }, second)).toBe(second);
  expect(withEdits(fields, { set: {}, remove: [] })).toBe(fields);
});

test("a 304 says nothing of what the rule sets to describe the body", () => {
  const edits = {
    set: { "content-TYPE": "text/x", "Cache-Control": "no-cache" },
    remove: ["ETag"],
  };
  expect(editsOfNotModified(edits)).toEqual({
    set: { "Cache-Control": "no-cache" },
    remove: ["ETag", "content-TYPE"],
  });
});

test("a name for what is told: order and capitals of names mean nothing, values do", () => {
  const one = requestEditsName({ set: { "X-A": "1", "X-B": "2" }, remove: ["C", "D"] });
  expect(one).toMatch(/^[0-9a-f]{32}$/);
  expect(requestEditsName({ set: { "x-b": "2", "x-a": "1" }, remove: ["d", "c"] })).toBe(one);
  const others = [
    { set: { "X-A": "1", "X-B": "3" }, remove: ["C", "D"] },
    { set: { "X-A": "1" }, remove: ["C", "D"] },
    { set: { "X-A": "1", "X-B": "2" }, remove: ["C"] },
    { set: { "X-A": "1", "X-B": "2", C: "", D: "" }, remove: [] },
  ];
  for (const other of others) expect(requestEditsName(other)).not.toBe(one);
  expect(requestEditsName({ set: {}, remove: [] })).toBe("");
});
