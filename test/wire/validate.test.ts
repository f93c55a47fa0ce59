// What a decoder tells of what it refuses: every fault by its place, and no more of a hostile value than a person can read.

import { Type } from "typebox";
import { expect, test } from "vitest";
import { closed, decoder, toldPart } from "../../src/wire/validate.ts";

const decode = decoder(
  closed({
    name: Type.String(),
    list: Type.Optional(Type.Array(closed({ id: Type.Integer() }))),
  }),
);

function errorsOf(raw: unknown): readonly { readonly path: string; readonly message: string }[] {
  const decoded = decode(raw);
  return decoded.ok ? [] : decoded.errors;
}

test("an unknown field is named, with the one that was meant", () => {
  expect(errorsOf({ name: "a", nmae: "b" })).toEqual([
    { path: "/nmae", message: "unknown field; did you mean name?" },
  ]);
  expect(errorsOf({ name: "a", list: [{ id: 1, "a/b~c": 0 }] })).toEqual([
    { path: "/list/0/a~1b~0c", message: "unknown field" },
  ]);
});

// Without a bound this takes half a minute, which is longer than a test may take.
test("of 200,000 unknown fields the first are told, in no time", () => {
  const strangers = Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`x${i}`, i]));
  const errors = errorsOf({ ...strangers, name: "a" });
  expect(errors).toHaveLength(8);
  expect(errors[0]).toEqual({ path: "/x0", message: "unknown field" });
  const nested = errorsOf({ name: "a", list: [{ ...strangers, id: 1 }] });
  expect(nested).toHaveLength(8);
  expect(nested[0]?.path).toBe("/list/0/x0");
});

test("a value without many unknown fields is told of as it is", () => {
  const value = { name: 1, list: [{ id: "x", stranger: [] }] };
  expect(toldPart(value, new Set(["name", "list", "id"]))).toBe(value);
});

test("of many unknown fields 20 are told of, at any depth, and every known one wherever it stands", () => {
  const strangers = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`x${i}`, i]));
  const told = toldPart(
    { ...strangers, list: [{ ...strangers, id: 1 }], name: "a" },
    new Set(["name", "list", "id"]),
  );
  const first = Object.fromEntries(Object.entries(strangers).slice(0, 20));
  expect(told).toEqual({ ...first, list: [{ ...first, id: 1 }], name: "a" });
});

test("names of any length are told by their beginning", () => {
  const [error] = errorsOf({ name: "a", ["y".repeat(1_000_000)]: 1 });
  expect(error?.path).toBe(`/${"y".repeat(200)}…`);
});
