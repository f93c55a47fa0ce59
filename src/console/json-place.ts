// Where in a JSON text a cursor is: the keys and indexes that lead there, also while the text is not whole yet. Pure.

export type JsonKey = string | number;

type Level = { readonly isObject: boolean; key: JsonKey | undefined; expectsKey: boolean };

/** Returns the keys from the root to the value or key at the cursor. */
export function keysAt(text: string, cursor: number): readonly JsonKey[] {
  const levels: Level[] = [];
  for (let at = 0; at < Math.min(cursor, text.length); at++) {
    const top = levels.at(-1);
    switch (text[at]) {
      case "{":
        levels.push({ isObject: true, key: undefined, expectsKey: true });
        break;
      case "[":
        levels.push({ isObject: false, key: 0, expectsKey: false });
        break;
      case "}":
      case "]":
        levels.pop();
        break;
      case ",":
        if (top === undefined) break;
        if (top.isObject) {
          top.key = undefined;
          top.expectsKey = true;
        } else top.key = Number(top.key) + 1;
        break;
      case ":":
        if (top !== undefined) top.expectsKey = false;
        break;
      case '"': {
        const end = stringEnd(text, at);
        if (top?.expectsKey === true) top.key = unquoted(text.slice(at, end));
        at = end - 1;
        break;
      }
    }
  }
  return levels.flatMap(({ key }) => (key === undefined ? [] : [key]));
}

/** The index behind the string that begins at `from`, or the end of the text. */
function stringEnd(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"' || text[at] === "\n") return at + 1;
  }
  return text.length;
}

function unquoted(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return text.replace(/^"|"$/g, "");
  }
}
