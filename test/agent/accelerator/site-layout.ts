// A small site with everything that can go wrong in it, laid out as a manifest over blobs or as a directory; and an edge that serves it.

import { createHash } from "node:crypto";
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { blobPath } from "../../../src/core/blob-path.ts";
import type { SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import { parseSha256 } from "../../../src/core/ids.ts";
import {
  encodeManifestTable,
  type ManifestFile,
} from "../../../src/core/serving/manifest-table.ts";
import type { Views } from "../../../src/core/serving/serving-state.ts";
import { openEdge, type Edge, type EdgeOptions } from "./edge.ts";

export const files: Readonly<Record<string, string>> = {
  "index.html": "<h1>home</h1>",
  "style.css": "body{}",
  "docs/index.html": "docs",
  "docs/deep/a b.txt": "spaced",
  "docs/ümlaut.txt": "umlaut",
  ".well-known/security.txt": "contact",
  ".secret": "hidden",
  "docs/.git/config": "hidden",
  "empty.txt": "",
  "data.bin": "0123456789",
  "404.html": "not here",
  "big.txt": "x".repeat(300_000),
};

export type Lay = { readonly views: Views; readonly blobsDir: string; readonly root: string };

export function layManifest(dir: string, prefix: string): Lay {
  const blobsDir = join(dir, "blobs");
  const mimes: Readonly<Record<string, string>> = {
    html: "text/html",
    css: "text/css",
    txt: "text/plain",
    bin: "application/octet-stream",
  };
  const entries = Object.entries(files).map(([path, content]): ManifestFile => {
    const sha256 = parseSha256(createHash("sha256").update(content).digest("hex"));
    if (sha256 === undefined) throw new Error("no digest");
    const blob = blobPath(blobsDir, sha256);
    mkdirSync(dirname(blob), { recursive: true });
    writeFileSync(blob, content);
    return {
      path: prefix + path,
      sha256,
      size: Buffer.byteLength(content),
      mime: mimes[path.split(".").at(-1) ?? ""] ?? "application/octet-stream",
    };
  });
  return {
    views: { kind: "manifest", table: encodeManifestTable(entries), prefix },
    blobsDir,
    root: "",
  };
}

export function layDirectory(dir: string): Lay {
  const root = join(dir, "site");
  const old = new Date(Date.now() - 100_000);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
    utimesSync(join(root, path), old, old);
  }
  return { views: { kind: "directory", root }, blobsDir: "", root };
}

export async function openSite(
  lay: Lay,
  site: SiteInput = {},
  options: EdgeOptions = {},
): Promise<Edge> {
  const edge = await openEdge({ ...options, site, views: lay.views, blobsDir: lay.blobsDir });
  return edge;
}
