// The metric families of both programs, read off the tables that declare them, for the documents that name them.

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pageOf } from "../../src/agent/admin/admin-server.ts";
import type { MetricSpec, MetricTable } from "../../src/base/metrics.ts";

const root = join(import.meta.dirname, "../..");
const ground = "src/base/metrics.ts";

export type Family = MetricSpec & {
  readonly name: string;
  /** The file whose table it is in. */
  readonly declaredIn: string;
  /** Every file that counts, sets, observes or reads it. */
  readonly usedIn: readonly string[];
};

const isTable = (value: unknown): value is MetricTable =>
  typeof value === "object" &&
  value !== null &&
  Object.keys(value).length > 0 &&
  Object.keys(value).every((name) => /^accel_(?:agent|central)_/.test(name));

const sources = globSync("src/**/*.ts", { cwd: root })
  .toSorted()
  .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));

/** Files that make metrics of a table. */
export const declaringFiles = sources
  .filter(({ path, text }) => path !== ground && /create(?:Metrics|Tallies)\(/.test(text))
  .map(({ path }) => path);

/** In the order of files and tables. A table is known by being exported. */
export async function readFamilies(): Promise<readonly Family[]> {
  const modules = await Promise.all(
    declaringFiles.map(async (path) => ({
      path,
      exported: Object.values((await import(join(root, path))) as Record<string, unknown>),
    })),
  );
  return modules.flatMap(({ path, exported }) =>
    exported
      .filter(isTable)
      .flatMap((table) => Object.entries(table))
      .map(([name, spec]) => ({ ...spec, name, declaredIn: path, usedIn: filesWith(name) })),
  );
}

function filesWith(name: string): readonly string[] {
  const counted = new RegExp(`\\b${name}\\b(?!: \\{)`);
  return sources.filter(({ text }) => counted.test(text)).map(({ path }) => path);
}

const shown = ({ name, labels = [] }: Family): string =>
  `\`${name}${labels.length === 0 ? "" : `{${labels.join(", ")}}`}\``;

/** For operators: what each of them means. */
export function meaningTable(families: readonly Family[]): string {
  const rows = families.map((family) => `| ${shown(family)} | ${family.help} |`);
  return ["| Metric | Meaning |", "|---|---|", ...rows, ""].join("\n");
}

/** For who reads the code: a table for each file that declares some, with where each is used. */
export function sourceTables(families: readonly Family[]): string {
  const byFile = Map.groupBy(families, ({ declaredIn }) => declaredIn);
  const tables = [...byFile].map(([file, declared]) => {
    const rows = declared.map((family) => {
      const { name, kind, help, usedIn } = family;
      const page = name.startsWith("accel_central_")
        ? "`/metrics`"
        : { edge: "`/metrics`", deployment: "`/metrics/deployment`" }[pageOf(name)];
      const files = usedIn.filter((path) => path !== file).map((path) => `\`${path}\``);
      return `| ${shown(family)} | ${kind} | ${page} | ${help} | ${files.join(", ") || "the same file"} |`;
    });
    return `### \`${file}\`\n\n| Metric | Kind | Page | Meaning | Used in |\n|---|---|---|---|---|\n${rows.join("\n")}\n`;
  });
  return tables.join("\n");
}
