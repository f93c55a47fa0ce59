// The console's files, read once at the start: `scripts/build-console.mjs` made them, each with its compressed forms.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type ConsoleFile = {
  readonly type: string;
  /** The bytes by content coding (RFC 9110, section 8.4.1). */
  readonly bodies: Readonly<Record<"identity" | "gzip" | "br", Buffer>>;
};

const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

/** Beside the built program; or where `npm start` puts the console for a program that runs from its sources. */
const directories = [
  join(import.meta.dirname, "console"),
  join(import.meta.dirname, "../../var/console"),
];

/** Returns the files by their names. Undefined if the console was never built. */
export function readConsole(): ReadonlyMap<string, ConsoleFile> | undefined {
  for (const directory of directories) {
    const found = readDirectory(directory);
    if (found !== undefined) return found;
  }
  return undefined;
}

function readDirectory(directory: string): ReadonlyMap<string, ConsoleFile> | undefined {
  try {
    const read = (name: string): Buffer => readFileSync(join(directory, name));
    const files = readdirSync(directory).flatMap((name) => {
      const type = types[name.slice(name.lastIndexOf(".") + 1)];
      if (type === undefined) return [];
      const bodies = { identity: read(name), gzip: read(`${name}.gz`), br: read(`${name}.br`) };
      return [[name, { type, bodies }] as const];
    });
    const all = new Map(files);
    return all.has("index.html") ? all : undefined;
  } catch {
    return undefined; // Not built, or being built.
  }
}

/** Chooses among the content codings that a browser takes (RFC 9110, section 12.5.3). */
export function chosenCoding(accepts: string | undefined): keyof ConsoleFile["bodies"] {
  const taken = new Set(
    (accepts ?? "").split(",").flatMap((part) => {
      const [coding = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
      return parameters.some((text) => /^q=0(?:\.0*)?$/.test(text)) ? [] : [coding];
    }),
  );
  return taken.has("br") ? "br" : taken.has("gzip") ? "gzip" : "identity";
}
