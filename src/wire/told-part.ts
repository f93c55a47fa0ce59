// The part of a refused value that its errors are told of. Telling takes TypeBox the square of the count of unknown members: 200,000 took 34 s.

import type { TSchema } from "typebox";

/** Of one object; every name that the schema knows is kept besides. */
const strangersMax = 20;
/** No schema goes deeper. */
const depthMax = 16;

/** The names of properties anywhere in a schema. */
export function namesIn(schema: TSchema): ReadonlySet<string> {
  const names = new Set<string>();
  const walk = (part: unknown): void => {
    if (typeof part !== "object" || part === null) return;
    for (const [keyword, value] of Object.entries(part)) {
      if (keyword === "properties" && typeof value === "object" && value !== null)
        for (const name of Object.keys(value)) names.add(name);
      walk(value);
    }
  };
  walk(schema);
  return names;
}

/** The value itself where it has no such object. */
export function toldPart(value: unknown, names: ReadonlySet<string>, depth = 0): unknown {
  if (typeof value !== "object" || value === null || depth > depthMax) return value;
  if (Array.isArray(value)) {
    const items = value.map((item) => toldPart(item, names, depth + 1));
    return items.every((item, i) => item === value[i]) ? value : items;
  }
  const all = Object.keys(value);
  const known = all.length <= strangersMax ? all : all.filter((name) => names.has(name));
  const strangers = all.length <= strangersMax ? [] : firstStrangers(all, names);
  let isChanged = known.length + strangers.length < all.length;
  const kept = [...known, ...strangers].map((name) => {
    const member: unknown = Reflect.get(value, name);
    const told = toldPart(member, names, depth + 1);
    isChanged ||= told !== member;
    return [name, told] as const;
  });
  return isChanged ? Object.fromEntries(kept) : value;
}

function firstStrangers(all: readonly string[], names: ReadonlySet<string>): readonly string[] {
  const first: string[] = [];
  for (const name of all) {
    if (first.length === strangersMax) break;
    if (!names.has(name)) first.push(name);
  }
  return first;
}
