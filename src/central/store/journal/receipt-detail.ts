// The detail of a receipt as stored: a JSON object that an agent made. Numbers are taken as counts, anything else as untold.

export type ReceiptDetail = Readonly<Record<string, unknown>>;

export function parseDetail(json: string): ReceiptDetail {
  const value: unknown = JSON.parse(json);
  // An object read from JSON has string keys.
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as ReceiptDetail)
    : {};
}

export function countOf(detail: ReceiptDetail, key: string): number | undefined {
  const value = detail[key];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Milliseconds with fractions. */
export function msOf(detail: ReceiptDetail, key: string): number | undefined {
  const value = detail[key];
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

export function textsOf(detail: ReceiptDetail, key: string): readonly string[] {
  const value = detail[key];
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
