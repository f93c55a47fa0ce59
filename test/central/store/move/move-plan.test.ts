// The order in which tables are moved, and when tables and rows are the same.

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  differingColumn,
  tablesFault,
  tablesInOrder,
} from "../../../../src/central/store/move/move-plan.ts";
import type { SourceTable } from "../../../../src/central/store/move/source-file.ts";

const table = (name: string, refersTo: readonly string[] = []): SourceTable => ({
  name,
  columns: ["id", "text"],
  key: ["id"],
  refersTo,
  lastId: undefined,
});

test("whatever refers to whatever else without a circle: each comes behind those that it refers to", () => {
  const some = fc.array(fc.array(fc.nat(20), { maxLength: 4 }), { maxLength: 20 });
  fc.assert(
    fc.property(some, fc.boolean(), (references, isReversed) => {
      // Each refers to earlier ones, and perhaps to itself.
      const tables = references.map((to, no) =>
        table(
          `t${no}`,
          to.filter((other) => other <= no).map((other) => `t${other}`),
        ),
      );
      const ordered = tablesInOrder(isReversed ? tables.toReversed() : tables);
      expect(new Set(ordered)).toEqual(new Set(tables));
      const places = new Map(ordered.map(({ name }, at) => [name, at]));
      for (const { name, refersTo } of tables)
        for (const other of refersTo)
          expect(places.get(other)).toBeLessThanOrEqual(places.get(name) ?? -1);
    }),
  );
});

test("a circle is told by its tables", () => {
  const tables = [table("a", ["b"]), table("b", ["a"]), table("c")];
  expect(() => tablesInOrder(tables)).toThrow(/circle: a, b$/);
});

test.each([
  [{ a: ["id", "text"] }, undefined],
  [{ a: ["text", "id"] }, undefined],
  [{}, "the file has a, which is not in PostgreSQL"],
  [{ a: ["id", "text"], b: ["id"] }, "PostgreSQL has b, which is not in the file"],
  [{ a: ["id"] }, "a has other columns in the file than in PostgreSQL"],
  [{ a: ["id", "other"] }, "a has other columns in the file than in PostgreSQL"],
])("PostgreSQL with %o: %s", (there, fault) => {
  const target = new Map(Object.entries(there).map(([name, columns]) => [name, new Set(columns)]));
  expect(tablesFault([table("a")], target)).toBe(fault);
});

test("a table without a key cannot be compared", () => {
  const target = new Map([["a", new Set(["id", "text"])]]);
  expect(tablesFault([{ ...table("a"), key: [] }], target)).toBe("a has no primary key");
});

test.each([
  [{ id: 1, text: "a" }, { id: 1, text: "a" }, undefined],
  [{ id: 1, text: null }, { id: 1, text: null }, undefined],
  [{ id: 1, text: null }, { id: 1, text: "" }, "text"],
  [{ id: 1, text: "a" }, { id: 2, text: "a" }, "id"],
  [{ id: 1, text: 1 }, { id: 1, text: "1" }, "text"],
  [{ id: 1, text: Buffer.of(1, 2) }, { id: 1, text: Buffer.of(1, 2) }, undefined],
  [{ id: 1, text: Buffer.of(1, 2) }, { id: 1, text: Buffer.of(1, 3) }, "text"],
])("%o and %o differ in %s", (one, other, column) => {
  expect(differingColumn(["id", "text"], one, other)).toBe(column);
});
