// The detail of a receipt as stored: a JSON object that an agent made. Numbers are taken as counts, anything else as untold.

export type Detail = Readonly<Record<string, unknown>>;

export function parseDetail(json: string): Detail {
  const value: unknown = JSON.parse(json);
  // An object read from JSON has string keys.
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Detail)
    : {};
}

export function countOf(detail: Detail, key: string): number | undefined {
  const value = detail[key];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Milliseconds with fractions. */
export function msOf(detail: Detail, key: string): number | undefined {
  const value = detail[key];
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

export function textsOf(detail: Detail, key: string): readonly string[] {
  const value = detail[key];
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
