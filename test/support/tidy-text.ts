// Sources as text, for the rules of tidy.test.ts: what a file imports, and its code without comments.

export type SourceFile = { readonly path: string; readonly text: string };

/** Derives something of a file once: the rules look at a thousand files again for each offence that is planted among them. */
export function ofFile<T>(derive: (file: SourceFile) => T): (file: SourceFile) => T {
  const known = new WeakMap<SourceFile, { readonly value: T }>();
  return (file) => {
    const found = known.get(file) ?? { value: derive(file) };
    known.set(file, found);
    return found.value;
  };
}

type Import = { readonly target: string; readonly typeOnly: boolean };

/** Static, dynamic and type imports with literal targets; computed ones are banned by the rule `import`. */
export const importsOf = ofFile(({ text }): readonly Import[] => {
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
});

/** The files that its relative imports name, as paths. */
export const importedBy = ofFile((file): readonly string[] =>
  importsOf(file)
    .filter(({ target }) => target.startsWith("."))
    .map(({ target }) => resolvePath(file.path, target)),
);

/** The path that a relative import of the file `from` names. */
export function resolvePath(from: string, target: string): string {
  const parts = from.split("/").slice(0, -1);
  for (const part of target.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

export const codeOf = ofFile(({ text }) =>
  text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/(^|\s)\/\/.*$/gm, "$1"),
);
