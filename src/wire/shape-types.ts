// The types of JSON Schema that our documents are written in.

const words: ReadonlyMap<string, string> = new Map([
  ["object", "an object"],
  ["array", "a list"],
  ["string", "a string"],
  ["number", "a number"],
  ["integer", "an integer"],
  ["boolean", "true or false"],
]);

export function typeInWords(type: string | undefined): string {
  return words.get(type ?? "") ?? "something else";
}

export function fitsType(type: string | undefined, value: unknown): boolean {
  switch (type) {
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "array":
      return Array.isArray(value);
    case "number":
      return Number.isFinite(value);
    case "integer":
      return Number.isSafeInteger(value);
    default:
      return typeof value === type;
  }
}
