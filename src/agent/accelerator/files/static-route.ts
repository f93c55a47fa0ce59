// From a request path to a static file: index files, the redirect of a directory to its slash, what is hidden.

import { decodePath } from "../../../core/http/request-path.ts";
import type { SiteSettings } from "../../../core/serving/effective-devlove.ts";
import type { FileFact } from "../../../core/serving/request-plan.ts";
import type { SiteFile, SiteFiles } from "./site-files.ts";

export type FileFound =
  | { readonly kind: "file"; readonly file: SiteFile }
  | Exclude<FileFact, { readonly kind: "file" }>;

const none: FileFound = { kind: "none" };

/** The caller disposes the file. */
export async function routeStatic(
  files: SiteFiles,
  rawPath: string,
  index: SiteSettings["index"],
): Promise<FileFound> {
  const path = decodePath(rawPath);
  if (path === undefined || !isServable(path)) return none;
  const isDirectory = path === "" || path.endsWith("/");
  if (!isDirectory) {
    const file = await files.find(path);
    if (file !== undefined) return { kind: "file", file };
  }
  for (const name of index) {
    if (!isServable(name)) continue;
    const file = await files.find(isDirectory ? path + name : `${path}/${name}`);
    if (file === undefined) continue;
    if (isDirectory) return { kind: "file", file };
    await file[Symbol.asyncDispose]();
    // Encoded anew from what was looked up: as sent, `//host/..` or a backslash could lead elsewhere.
    return { kind: "directory", path: `/${path.split("/").map(encodeURIComponent).join("/")}/` };
  }
  return none;
}

/** A page that the devlove names. The caller disposes the file. */
export async function findPage(files: SiteFiles, path: string | null): Promise<FileFound> {
  const file = path === null ? undefined : await files.find(path);
  return file === undefined ? none : { kind: "file", file };
}

/** Empty segments name nothing. Hidden files are not for visitors, but for /.well-known/ (RFC 8615). */
function isServable(path: string): boolean {
  const segments = path.split("/");
  if (segments.at(-1) === "") segments.pop();
  return segments.every(
    (segment, at) =>
      segment !== "" && (!segment.startsWith(".") || (at === 0 && segment === ".well-known")),
  );
}
