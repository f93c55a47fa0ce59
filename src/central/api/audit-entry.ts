// A line of the audit trail: who changed what. It is kept for long and read by many, so no secret and no long
// text ever comes into it.

import type { Json } from "../../core/journal/canonical-json.ts";
import { sha256Of } from "../../core/ids.ts";

const charsMax = 200;
const itemsMax = 100;
const depthMax = 6;

/** Members with such names are never shown: credentials, and hook URLs, which let whoever knows them post. */
const secretName =
  /pass(?:word|phrase)|secret|token(?!_ids?$)|private|credential|hook_url|authorization/i;

/**
 * Makes a request's body fit for the trail: secrets by name only, long texts by length and digest, long lists
 * by their beginning.
 */
export function auditable(value: Json | undefined, depth = 0): Json {
  if (typeof value === "string") return shortened(value);
  if (value === undefined || value === null) return null;
  if (typeof value !== "object") return value;
  if (depth === depthMax) return "…";
  if (Array.isArray(value)) {
    const shown = value.slice(0, itemsMax).map((item: Json) => auditable(item, depth + 1));
    return value.length > itemsMax ? [...shown, `… ${value.length - itemsMax} more`] : shown;
  }
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, itemsMax)
      .map(([name, member]) => [
        name,
        secretName.test(name) ? "[secret]" : auditable(member, depth + 1),
      ]),
  );
}

/** Makes named values fit for the trail in the same way. */
export function auditableMembers(
  values: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, Json>> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      secretName.test(name) ? "[secret]" : shortened(value ?? ""),
    ]),
  );
}

function shortened(text: string): Json {
  if (text.includes("PRIVATE KEY")) return "[secret]";
  if (text.length <= charsMax) return text;
  return { characters: text.length, sha256: sha256Of(text) };
}

/** Returns the ids that an answer names: those of what was made. */
export function madeIds(body: unknown): Readonly<Record<string, Json>> {
  if (typeof body !== "object" || body === null) return {};
  return Object.fromEntries(
    Object.entries(body).filter(
      ([name, value]) =>
        /^(?:id|name16|version|[a-z_]+_id)$/.test(name) &&
        (typeof value === "string" || typeof value === "number"),
    ),
  );
}
