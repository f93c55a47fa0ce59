// A site of the size and shape of real documentation: paths and sizes of ../shared/data/paths, contents of a text that is another one in every file.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";

export const docList = join(
  import.meta.dirname,
  "../../../shared/data/paths/debian.openjdk-17-doc.size-path.tsv.gz",
);

export type DocTree = { readonly files: number; readonly bytes: number };

/** Undefined: the list is not there. */
export function layDocTree(root: string): DocTree | undefined {
  if (!existsSync(docList)) return undefined;
  let files = 0;
  let bytes = 0;
  const made = new Set<string>();
  for (const line of gunzipSync(readFileSync(docList)).toString("utf8").trim().split("\n")) {
    const [size = "0", path = ""] = line.split("\t");
    const full = join(root, path);
    if (!made.has(dirname(full))) mkdirSync(dirname(full), { recursive: true });
    made.add(dirname(full));
    writeFileSync(full, contentOf(path, Number(size)));
    files++;
    bytes += Number(size);
  }
  return { files, bytes };
}

/** Compressible as text is, equal for nobody. */
function contentOf(path: string, size: number): Buffer {
  const word = createHash("sha256").update(path).digest("hex");
  return Buffer.alloc(size, `<p class="${word}">${path}</p>\n`);
}
