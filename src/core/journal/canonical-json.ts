// Writes one text for one JSON value: keys sorted, no blanks. Whatever is digested or compared is written
// this way.

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json | undefined };

/** Leaves out members that are undefined, as JSON.stringify does. */
export function canonicalJson(value: Json | undefined): string {
  if (value === undefined || value === null || typeof value !== "object")
    return JSON.stringify(value ?? null);
  if (isList(value)) return `[${value.map((item) => canonicalJson(item)).join(",")}]`;
  const members = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`);
  return `{${members.join(",")}}`;
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
