// Header fields: lookups, list syntax, and what does not pass a hop.

import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  fieldValue,
  fieldValues,
  fieldsOfRaw,
  listMembers,
  memberParts,
  withoutHopByHop,
} from "../../../src/core/http/http-fields.ts";

describe("fields", () => {
  it("are found whatever their case, several lines as one value", () => {
    const fields = fieldsOfRaw(["Accept", " a ", "X", "1", "ACCEPT", "b"]);
    expect(fieldValues(fields, "accept")).toEqual(["a", "b"]);
    expect(fieldValue(fields, "accept")).toBe("a, b");
    expect(fieldValue(fields, "none")).toBeUndefined();
  });

  it.each([
    ["a, b ,,c", ["a", "b", "c"]],
    ['no-cache="a, b", max-age=1', ['no-cache="a, b"', "max-age=1"]],
    ['"x\\", y", z', ['"x\\", y"', "z"]],
    ['a"b, c', ['a"b', "c"]],
    ["", []],
  ])("list %j has members %j", (value, members) => {
    expect(listMembers(value)).toEqual(members);
  });
});

describe("list members", () => {
  afterEach(() => vi.restoreAllMocks());

  /** A quoted string where there is one, else any character but a comma: tries again behind each quote that is not closed. */
  const naive = (value: string): readonly string[] =>
    Array.from(value.matchAll(/(?:"(?:[^"\\]|\\.)*"|[^,"]|")+/g), ([member]) =>
      member.trim(),
    ).filter((member) => member !== "");

  it("are what the grammar says, quotes closed or not", () => {
    const text = fc.string({ unit: fc.constantFrom('"', ",", "\\", " ", "a", "="), maxLength: 24 });
    fc.assert(
      fc.property(text, (value) => {
        expect(listMembers(value), value).toEqual(naive(value));
      }),
      { numRuns: 20_000 },
    );
  });

  it.each(['"\\', '"', "\\", '"a,', '",', '"\\"', ","])(
    "of a long %j cost two looks a character",
    (part) => {
      const value = `"${part.repeat(8_192)}`;
      const looks = vi.spyOn(String.prototype, "charCodeAt");
      listMembers(value);
      expect(looks.mock.calls.length).toBeLessThanOrEqual(2 * value.length);
    },
  );
});

describe("hop-by-hop", () => {
  it("loses the standing fields and those that Connection names", () => {
    const kept = withoutHopByHop([
      ["Connection", "close, X-Trace,, keep-alive"],
      ["X-trace", "1"],
      ["TE", "trailers"],
      ["Host", "h"],
      ["connection", "x-second"],
      ["X-Second", "2"],
      ["Upgrade", "h2c"],
      ["Keep-Alive", "timeout=1"],
      ["Accept", "a"],
    ]);
    expect(kept.map(([name]) => name)).toEqual(["Host", "Accept"]);
  });

  it("never loses framing and addressing to a Connection that names them", () => {
    const kept = withoutHopByHop([
      ["Connection", "Host, Content-Length"],
      ["Host", "h"],
      ["Content-Length", "3"],
    ]);
    expect(kept).toEqual([
      ["Host", "h"],
      ["Content-Length", "3"],
    ]);
  });
});

it.each([
  ["image/avif", ["image/avif"]],
  ["a ; q=0.5;x", ["a", "q=0.5", "x"]],
  ['a;x=";q=0" ;q=1', ["a", 'x=";q=0"', "q=1"]],
  ['a;x="\\";b";c', ["a", 'x="\\";b"', "c"]],
  ['a;x=";b', ["a", 'x="', "b"]],
  [";a;", ["", "a", ""]],
  ["", [""]],
])("the parts of %j are %j", (member, parts) => {
  expect(memberParts(member)).toEqual(parts);
});
