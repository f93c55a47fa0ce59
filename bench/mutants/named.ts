// Mutants that once survived, each a hole that was closed: their deaths stay shown. A place is found by its text, not by where it stands.

import type { Mutant } from "./mutant.ts";

export type Named = {
  /** What goes wrong, in words. */
  readonly title: string;
  readonly file: string;
  /** Stands once in the file. */
  readonly from: string;
  readonly to: string;
};

/** Throws where the text no longer stands there once: the mutant is to be planted anew where the code went. */
export function namedMutant({ title, file, from, to }: Named, text: string): Mutant {
  const start = text.indexOf(from);
  if (start < 0 || text.indexOf(from, start + 1) >= 0)
    throw new Error(
      `${file}: "${from}" stands there ${start < 0 ? "no longer" : "more than once"}`,
    );
  const lineNo = text.slice(0, start).split("\n").length;
  const line = (text.split("\n")[lineNo - 1] ?? "").trim();
  return {
    name: { file, within: title, line, change: `${from} → ${to}` },
    operator: "named",
    edit: { start, end: start + from.length, replacement: to },
    lineNo,
    isTyped: false,
  };
}

export const named: readonly Named[] = [];
