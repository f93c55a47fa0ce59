// Sources as text, for the rules of tidy.test.ts: what a file imports, and its code without comments.

export type SourceFile = { readonly path: string; readonly text: string };

type Import = { readonly target: string; readonly typeOnly: boolean };

/** Static, dynamic and type imports with literal targets; computed ones are banned by the rule `import`. */
export function importsOf(text: string): readonly Import[] {
  const found: Import[] = [];
  for (const match of text.matchAll(
    /^\s*(?:import|export)\s+(type\s)?[^;"'`]*?from\s+"([^"]+)"/gm,
  )) {
    found.push({ target: match[2] ?? "", typeOnly: match[1] !== undefined });
  }
  for (const match of text.matchAll(/^\s*import\s+"([^"]+)"/gm))
    found.push({ target: match[1] ?? "", typeOnly: false });
  for (const match of text.matchAll(/\bimport\(\s*"([^"]+)"/g))
    found.push({ target: match[1] ?? "", typeOnly: false });
  return found;
}

/** The path that a relative import of the file `from` names. */
export function resolvePath(from: string, target: string): string {
  const parts = from.split("/").slice(0, -1);
  for (const part of target.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

export function stripComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/(^|\s)\/\/.*$/gm, "$1");
}
