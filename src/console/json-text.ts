// A JSON document with a field a line, for many are stored on one. Pure.

/** Returns the text as it is where it is no JSON. */
export function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
