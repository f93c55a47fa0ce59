// Heads of the tests of a published rule set against attacks on the web (shared/data/hostile), which lie beside the repository: whoever has them has more seeds.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

const archive = join(
  import.meta.dirname,
  "../../../../../shared/data/hostile/crs-3.3.4-regression-911-920.tar.gz",
);
export const hasHostileHeads = existsSync(archive);

const blockBytes = 512;

/** The texts of the files of a tar archive that are plain files. */
function* filesOf(tar: Buffer): Generator<string> {
  for (let at = 0; at + blockBytes <= tar.length && tar[at] !== 0;) {
    const size = Number.parseInt(tar.toString("latin1", at + 124, at + 135), 8);
    const start = at + blockBytes;
    if (tar.toString("latin1", at + 156, at + 157) === "0")
      yield tar.toString("latin1", start, start + size);
    at = start + Math.ceil(size / blockBytes) * blockBytes;
  }
}

/** What a value of these files says, quoted or not. */
function valueOf(text: string): string {
  const [, double, single] = /^"(.*)"$|^'(.*)'$/.exec(text) ?? [];
  return (double ?? single ?? text).replaceAll(/\\(["\\])/g, "$1");
}

/** A head of each request in them. */
export function hostileHeads(): readonly string[] {
  const heads: string[] = [];
  for (const text of filesOf(gunzipSync(readFileSync(archive))))
    for (const stage of text.split(/^ *input:/m).slice(1)) {
      const said = stage.replace(/^ *output:[^]*/m, "");
      const uri = valueOf(/^ *uri: *(.+?) *$/m.exec(said)?.[1] ?? "/");
      const version = valueOf(/^ *version: *(.+?) *$/m.exec(said)?.[1] ?? "HTTP/1.1");
      const method = valueOf(/^ *method: *(.+?) *$/m.exec(said)?.[1] ?? "GET");
      const listed = /^( *)headers:\n((?:\1 +.*\n)+)/m.exec(said)?.[2] ?? "";
      const lines = listed.split("\n").flatMap((line) => {
        const [, name, value = ""] = /^ *([^\s:][^:]*): *(.*?) *$/.exec(line) ?? [];
        return name === undefined ? [] : `${name}: ${valueOf(value)}`;
      });
      heads.push(`${[`${method} ${uri} ${version}`, ...lines].join("\r\n")}\r\n\r\n`);
    }
  return heads;
}
