// What a clear selects within its scope: whatever one of its patterns matches, or one of its groups. Null
// patterns match everything. The guard, the matcher and the proof ask the same selection.

import { normalPattern } from "../../../core/patterns/index-schema.ts";
import type { ClearGroup, Scope } from "../entry.ts";

export type ClearSelection = {
  /** Null: everything in scope. */
  readonly patterns: readonly string[] | null;
  readonly groups: readonly ClearGroup[];
};

export const allInScope: ClearSelection = { patterns: null, groups: [] };

/** Returns the lists of patterns that hold for a host of the scope; null where everything of it is selected. */
export function patternListsFor(
  { patterns, groups }: ClearSelection,
  host: string,
): readonly (readonly string[])[] | null {
  if (patterns === null) return null;
  const lists = [patterns];
  for (const group of groups) {
    if (group.host !== null && group.host !== host) continue;
    if (group.patterns === null) return null;
    lists.push(group.patterns);
  }
  return lists;
}

/** Returns the part of the scope that a group is of; undefined where it is of a host outside of the scope. */
export function narrowed(scope: Scope, host: string | null): Scope | undefined {
  if (host === null || scope.host === host) return scope;
  return scope.host === null ? { ...scope, host } : undefined;
}

/** Returns all patterns of the selection, for operators to read; null where it is everything in scope. */
export function shownPatterns({ patterns, groups }: ClearSelection): readonly string[] | null {
  if (patterns === null) return null;
  return [
    ...patterns,
    ...groups.flatMap((group) =>
      group.patterns === null
        ? [`everything of ${group.host ?? "every host"}`]
        : group.patterns.map((pattern) =>
            group.host === null ? pattern : `${pattern} of ${group.host}`,
          ),
    ),
  ];
}

export function selectionChars({ patterns, groups }: ClearSelection): number {
  const sum = (texts: readonly string[] | null): number =>
    texts?.reduce((chars, text) => chars + text.length, 0) ?? 0;
  return groups.reduce((chars, group) => chars + sum(group.patterns), sum(patterns));
}

/** Writes the selection as index.db keeps it: a list of patterns and groups, or null. */
export function selectionText({ patterns, groups }: ClearSelection): string | null {
  return patterns === null ? null : JSON.stringify([...patterns, ...groups]);
}

/** Reads what `selectionText` wrote, with patterns in their normal form. */
export function parseSelection(text: string | null): ClearSelection {
  if (text === null) return allInScope;
  const list: unknown = JSON.parse(text);
  const items: readonly unknown[] = Array.isArray(list) ? list : [];
  const isGroup = (item: unknown): item is ClearGroup => typeof item === "object" && item !== null; // Nothing else is written as an object.
  return normalSelection({
    patterns: items.filter((item) => typeof item === "string"),
    groups: items.filter(isGroup),
  });
}

export function normalSelection({ patterns, groups }: ClearSelection): ClearSelection {
  return { patterns: patterns?.map(normalPattern) ?? null, groups };
}
