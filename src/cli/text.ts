// Writes facts as a table for a person: a heading, aligned columns, and no text that steers the terminal.

export type Row = Readonly<Record<string, unknown>>;

/**
 * Writes rows with their columns in the order of `names`; a missing value is a dash. `empty` replaces a table
 * without rows.
 */
export function textTable(rows: readonly Row[], names: readonly string[], empty: string): string {
  if (rows.length === 0) return `${empty}\n`;
  const cells = rows.map((row) => names.map((name) => cell(row[name])));
  const lines = [names.map((name) => name.replaceAll("_", " ")), ...cells];
  const widths = names.map((_, at) => Math.max(...lines.map((line) => (line[at] ?? "").length)));
  return lines
    .map(
      (line) =>
        `${line
          .map((text, at) => text.padEnd(widths[at] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

function cell(value: unknown): string {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return plain(typeof value === "string" ? value : JSON.stringify(value));
}

/** Makes strangers' words harmless on an operator's terminal. */
export function plain(text: string): string {
  return text.replaceAll(/\p{C}/gu, "?");
}

/** Quotes a word for a shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
