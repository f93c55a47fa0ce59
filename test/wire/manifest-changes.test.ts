// What two manifests differ in, against a plain comparison of any two; and what cannot be compared.

import * as fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson } from "../../src/core/journal/canonical-json.ts";
import { sha256Of } from "../../src/core/ids.ts";
import type { Manifest } from "../../src/wire/manifest.ts";
import { changeSamplesMax, compareManifests } from "../../src/wire/manifest-changes.ts";

const bytesOf = (files: Manifest["files"]): Uint8Array =>
  new TextEncoder().encode(
    canonicalJson({ devlove: { schema: "devlove/1", sha256: "0".repeat(64) }, files }),
  );

const fileOf = (path: string, content: number, mime = "text/html") => ({
  path,
  sha256: sha256Of(String(content)),
  size: content * 10,
  mime,
});

function changesOf(before: Manifest["files"] | undefined, after: Manifest["files"]) {
  const compared = compareManifests(
    before === undefined ? undefined : bytesOf(before),
    bytesOf(after),
  );
  if (!compared.ok) throw new Error(compared.reason);
  return compared.changes;
}

const someFiles = fc
  .uniqueArray(
    fc.tuple(fc.constantFrom("a", "b/c", "b/d", "é", "Z"), fc.nat({ max: 2 }), fc.boolean()),
    {
      selector: ([path]) => path,
    },
  )
  .map((files) =>
    files.map(([path, content, isText]) =>
      fileOf(path, content, isText ? "text/html" : "text/css"),
    ),
  );

test("each file is added, removed, changed or the same, as its path, content and media type say", () => {
  fc.assert(
    fc.property(someFiles, someFiles, (before, after) => {
      const paths = [...new Set([...before, ...after].map(({ path }) => path))].sort();
      const told = paths.map((path) => {
        const had = before.find((one) => one.path === path);
        const has = after.find((one) => one.path === path);
        const isSame = had?.sha256 === has?.sha256 && had?.mime === has?.mime;
        const change = had === undefined ? "added" : has === undefined ? "removed" : "changed";
        return {
          path,
          change: isSame ? "same" : change,
          bytes_before: had?.size ?? null,
          bytes_after: has?.size ?? null,
        };
      });
      const count = (change: string) => told.filter((one) => one.change === change).length;
      expect(changesOf(before, after)).toEqual({
        added: count("added"),
        removed: count("removed"),
        changed: count("changed"),
        same: count("same"),
        bytes_before: told.reduce((sum, one) => sum + (one.bytes_before ?? 0), 0),
        bytes_after: told.reduce((sum, one) => sum + (one.bytes_after ?? 0), 0),
        samples: told.filter(({ change }) => change !== "same"),
        truncated: false,
      });
    }),
  );
});

test("of many differences the first by path are shown; without a version before, all is added", () => {
  const many = Array.from({ length: changeSamplesMax + 1 }, (_, no) =>
    fileOf(String(no).padStart(4, "0"), 1),
  );
  const changes = changesOf(undefined, many.toReversed());
  expect(changes).toMatchObject({ added: changeSamplesMax + 1, truncated: true, bytes_before: 0 });
  expect(changes?.samples.map(({ path }) => path)).toEqual(
    many.slice(0, changeSamplesMax).map(({ path }) => path),
  );
});

test("what lies in the host's own directory is not known, and what is broken is no manifest", () => {
  expect(changesOf(null, [])).toBeUndefined();
  expect(changesOf([], null)).toBeUndefined();
  for (const broken of ["", "{", "{}", "null"]) {
    const bytes = new TextEncoder().encode(broken);
    expect(compareManifests(bytes, bytesOf([])).ok).toBe(false);
    expect(compareManifests(bytesOf([]), bytes).ok).toBe(false);
  }
});
