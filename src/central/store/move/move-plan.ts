// How the tables of a store are moved: in which order, and when two rows are the same.

import { AccelError } from "../../../core/faults.ts";
import type { StoredRow, SourceTable } from "./source-file.ts";

/** Orders tables so that each comes behind those that its rows refer to. Throws where they refer to each other in a circle. */
export function tablesInOrder(tables: readonly SourceTable[]): readonly SourceTable[] {
  const left = new Map(tables.map((table) => [table.name, table]));
  const ordered: SourceTable[] = [];
  while (left.size > 0) {
    const next = [...left.values()].find(({ name, refersTo }) =>
      refersTo.every((other) => other === name || !left.has(other)),
    );
    if (next === undefined)
      throw new AccelError(
        "INTERNAL",
        `tables refer to each other in a circle: ${[...left.keys()].join(", ")}`,
      );
    ordered.push(next);
    left.delete(next.name);
  }
  return ordered;
}

/** Says how the tables of the two differ; undefined: they do not. */
export function tablesFault(
  source: readonly SourceTable[],
  target: ReadonlyMap<string, ReadonlySet<string>>,
): string | undefined {
  const names = new Set(source.map(({ name }) => name));
  const more = [...target.keys()].filter((name) => !names.has(name));
  if (more.length > 0) return `PostgreSQL has ${more.join(", ")}, which is not in the file`;
  for (const { name, columns, key } of source) {
    const there = target.get(name);
    if (there === undefined) return `the file has ${name}, which is not in PostgreSQL`;
    if (columns.length !== there.size || columns.some((column) => !there.has(column)))
      return `${name} has other columns in the file than in PostgreSQL`;
    if (key.length === 0) return `${name} has no primary key`;
  }
  return undefined;
}

/** The first column in which two rows differ; undefined: they are the same. */
export function differingColumn(
  columns: readonly string[],
  one: StoredRow,
  other: StoredRow,
): string | undefined {
  return columns.find((column) => !isSame(one[column], other[column]));
}

function isSame(one: unknown, other: unknown): boolean {
  if (Buffer.isBuffer(one) && Buffer.isBuffer(other)) return one.equals(other);
  return one === other;
}
