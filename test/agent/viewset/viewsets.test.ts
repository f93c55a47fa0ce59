// Preparing viewsets over a real directory, with a central in memory: what is whole and valid becomes ready, all else says why.

import { readdirSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { blobPath } from "../../../src/core/blob-path.ts";
import type { Sha256 } from "../../../src/core/ids.ts";
import { ManifestTable } from "../../../src/core/serving/manifest-table.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";
import { digest, type FakeCentral } from "./fake-central.ts";
import { devlove, names, never, setUp, site } from "./fixture.ts";

test("a viewset is fetched whole, each content once, and its table answers for each path", async () => {
  using dir = tempDir();
  const { central, viewsets, metric } = await setUp(dir.path);
  const manifest = central.addViewset(devlove, site);
  const ready = await viewsets.prepare(manifest, names, never);
  expect(ready).toMatchObject({ manifest, devlove: JSON.parse(devlove) });
  if (ready.table === null) throw new Error("a viewset with files has a table");
  const table = new ManifestTable(ready.table);
  expect([...table.files()].map(({ path, sha256 }) => [path, sha256])).toEqual([
    ["a/b.html", digest("<p>b")],
    ["a/copy.html", digest("<p>b")],
    ["index.html", digest("<p>home")],
  ]);
  expect(central.asked.length).toBe(4); // Manifest, devlove, two contents.
  expect(await metric("activations_total")).toEqual([{ labels: { outcome: "done" }, value: 1 }]);
  expect(await metric("blobs_total")).toEqual([{ labels: { direction: "received" }, value: 4 }]);
});

test("only what changed is fetched for the next version", async () => {
  using dir = tempDir();
  const { central, viewsets } = await setUp(dir.path);
  await viewsets.prepare(central.addViewset(devlove, site), names, never);
  const next = central.addViewset(devlove, { ...site, "index.html": "<p>new" });
  const before = central.asked.length;
  await viewsets.prepare(next, names, never);
  expect(central.asked.slice(before).map(({ sha256 }) => sha256)).toEqual([next, digest("<p>new")]);
});

test("a viewset without views of its own has a devlove and no table", async () => {
  using dir = tempDir();
  const { central, viewsets } = await setUp(dir.path);
  const manifest = central.addViewset(devlove, null);
  expect(await viewsets.prepare(manifest, names, never)).toMatchObject({ table: null });
  const ready = { manifest, table: null };
  expect(await viewsets.restore(manifest, names)).toMatchObject({ ready, isWhole: true });
});

test("2,000 files of 300 contents: bounded transfers, whole, restored quickly", async () => {
  using dir = tempDir();
  const { central, viewsets } = await setUp(dir.path);
  const files = Object.fromEntries(
    Array.from({ length: 2_000 }, (_, i) => [`d${i % 37}/f${i}.html`, `<p>page ${i % 300}`]),
  );
  const manifest = central.addViewset(devlove, files);
  await viewsets.prepare(manifest, names, never);
  expect(central.runningMost).toBeGreaterThan(1);
  expect(central.runningMost).toBeLessThanOrEqual(6);
  const { viewsets: rebooted, health } = await setUp(dir.path);
  const table = (await rebooted.restore(manifest, names))?.ready.table ?? null;
  expect(table === null ? 0 : new ManifestTable(table).count).toBe(2_000);
  expect(health.list()).toEqual([]);
});

test("a transfer that breaks off is central's absence, and the next try goes on", async () => {
  using dir = tempDir();
  const { central, viewsets, metric } = await setUp(dir.path);
  const large = Buffer.alloc(500_000, "large ");
  const manifest = central.addViewset(devlove, { ...site, "large.bin": large });
  central.cuts.set(digest(large), 200_000);
  const first = viewsets.prepare(manifest, names, never);
  await expect(first).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE", retryable: true });
  await viewsets.prepare(manifest, names, never);
  expect(central.asked.filter(({ sha256 }) => sha256 === digest(large))).toEqual([
    { sha256: digest(large), from: 0, isText: true },
    { sha256: digest(large), from: 200_000, isText: false },
  ]);
  expect(await metric("activations_total")).toEqual([
    { labels: { outcome: "failed" }, value: 1 },
    { labels: { outcome: "done" }, value: 1 },
  ]);
});

test("stopping ends the transfers", async () => {
  using dir = tempDir();
  const { central, viewsets } = await setUp(dir.path);
  const manifest = central.addViewset(devlove, site);
  const gate = Promise.withResolvers<void>();
  central.gate = gate.promise;
  const stop = new AbortController();
  const stopped = viewsets.prepare(manifest, names, stop.signal);
  await until("the transfer runs", () => central.running > 0);
  stop.abort(new Error("stopped"));
  gate.resolve();
  await expect(stopped).rejects.toThrow("stopped");
  expect(central.running).toBe(0);
});

describe("refused, with the reason", () => {
  type Spoil = (central: FakeCentral) => Sha256;
  const path =
    (bad: string): Spoil =>
    (central) =>
      central.addViewset(devlove, site, ({ files, ...rest }) => ({
        ...rest,
        files: (files ?? []).map((file, i) => (i === 0 ? { ...file, path: bad } : file)),
      }));
  const cases: readonly (readonly [string, Spoil, readonly RegExp[]])[] = [
    ["a path out of the root", path("../../etc/passwd"), [/"\.\.\/\.\.\/etc\/passwd"/]],
    ["an absolute path", path("/etc/passwd"), [/"\/etc\/passwd" is no path below the root/]],
    ["a NUL in a path", path("a\0b"), [/no path below the root/]],
    ["half a character in a path", path("a\ud800"), [/no path below the root/]],
    ["a path twice", path("a/b.html"), [/"a\/b.html" stands twice/]],
    [
      "names that differ only in case",
      (central) => central.addViewset(devlove, { "a.html": "1", "b.html": "2", "A.html": "3" }),
      [/^manifest: "a\.html" and "A\.html" differ only in case$/],
    ],
    [
      "directories that differ only in case",
      (central) => central.addViewset(devlove, { "x/É/1": "1", "x/é/2": "2" }),
      [/^manifest: "x\/é" and "x\/É" differ only in case$/],
    ],
    ["a manifest that is no JSON", (central) => central.add("{"), [/not JSON/]],
    ["a manifest of another shape", (central) => central.add("{}"), [/devlove/]],
    [
      "one content with two sizes",
      (central) =>
        central.addViewset(devlove, site, ({ files, ...rest }) => ({
          ...rest,
          files: (files ?? []).map((file) =>
            file.path === "a/copy.html" ? { ...file, size: 5 } : file,
          ),
        })),
      [/a\/copy.html.* another size/],
    ],
    [
      "a content of another size than central has",
      (central) =>
        central.addViewset(devlove, site, ({ files, ...rest }) => ({
          ...rest,
          files: (files ?? []).map((file) => ({ ...file, size: 999 })),
        })),
      [/ bytes instead of 999/],
    ],
    [
      "a content that central does not have",
      (central) => {
        const manifest = central.addViewset(devlove, site);
        central.blobs.delete(digest("<p>home"));
        return manifest;
      },
      [/central does not have the content of "index.html"/],
    ],
    ["a manifest that central does not have", () => digest("nothing"), [/the manifest/]],
    [
      "a devlove with several errors",
      (central) =>
        central.addViewset(
          JSON.stringify({ domains: { "www.example.com": { indx: [], compression: 3 } } }),
          site,
        ),
      [/\/domains\/www.example.com\/indx.*did you mean index\?/, /compression/],
    ],
    [
      "a devlove for another domain",
      (central) => central.addViewset('{"domains":{"www.example.org":{}}}', site),
      [/www\.example\.org/],
    ],
    [
      "a devlove of 2 MiB",
      (central) => central.addViewset(" ".repeat(2 * 2 ** 20), site),
      [/bytes instead of at most 1048576/],
    ],
    [
      "a devlove that is no UTF-8",
      (central) => {
        const text = Buffer.from(devlove.replace("static.", "stat\xffc."), "latin1");
        return central.addViewset(devlove, site, (manifest) => ({
          ...manifest,
          devlove: { schema: "devlove/1", sha256: central.add(text) },
        }));
      },
      [/not UTF-8/],
    ],
    [
      "a devlove of another schema",
      (central) =>
        central.addViewset(devlove, site, (manifest) => ({
          ...manifest,
          devlove: { ...manifest.devlove, schema: "devlove/2" },
        })),
      [/devlove\/2/],
    ],
  ];
  test.each(cases)("%s", async (_, spoil, reasons) => {
    using dir = tempDir();
    const { central, viewsets, metric } = await setUp(dir.path);
    const refused = viewsets.prepare(spoil(central), names, never);
    await expect(refused).rejects.toMatchObject({ code: "VIEWSET_INVALID" });
    for (const reason of reasons) await expect(refused).rejects.toThrow(reason);
    expect(await metric("activations_total")).toEqual([
      { labels: { outcome: "refused" }, value: 1 },
    ]);
  });

  test("a hundred thousand errors make one bounded message", async () => {
    using dir = tempDir();
    const { central, viewsets } = await setUp(dir.path);
    const keys = Array.from({ length: 50_000 }, (_, i) => [`k${i}`, 0]);
    const text = JSON.stringify({ domains: { "www.example.com": Object.fromEntries(keys) } });
    const refused = viewsets.prepare(central.addViewset(text, site), names, never);
    const error: unknown = await refused.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ message: expect.stringMatching(/k0.*; and \d+ more$/) });
    expect(String(error).length).toBeLessThan(7_000);
  });
});

test("a content with other bytes than its digest is not refused for good, and never taken", async () => {
  using dir = tempDir();
  const { central, viewsets } = await setUp(dir.path);
  const manifest = central.addViewset(devlove, site);
  central.forged.set(digest("<p>home"), Buffer.from("<p>evil"));
  const damaged = viewsets.prepare(manifest, names, never);
  await expect(damaged).rejects.toMatchObject({ code: "BLOB_MISMATCH", retryable: true });
  central.forged.clear();
  await viewsets.prepare(manifest, names, never);
});

test("what damaged the manifest on this disk is healed by fetching it again", async () => {
  using dir = tempDir();
  const { central, viewsets } = await setUp(dir.path);
  const manifest = central.addViewset(devlove, site);
  await viewsets.prepare(manifest, names, never);
  writeFileSync(blobPath(viewsets.blobsDir, manifest), "damaged");
  expect(await viewsets.prepare(manifest, names, never)).toMatchObject({ manifest });
});

test("paths that differ in case and are said to be meant, in form, or are one another's directory are files of their own: no path becomes a file name", async () => {
  using dir = tempDir();
  const { central, viewsets } = await setUp(dir.path);
  const files = {
    "A.html": "upper",
    "a.html": "lower",
    "caf\u00e9": "composed",
    "cafe\u0301": "decomposed",
    docs: "a file",
    "docs/x": "below it",
    "con.txt ": "a name that some systems cannot have",
  };
  const manifest = central.addViewset(devlove, files, (plain) => ({
    ...plain,
    paths_differ_in_case: true,
  }));
  const ready = await viewsets.prepare(manifest, names, never);
  const table = new ManifestTable(ready.table ?? new SharedArrayBuffer(4));
  const found = Object.keys(files).map((path) => table.find(path)?.sha256);
  expect(found).toEqual(Object.values(files).map((content) => digest(content)));
  const kept = readdirSync(`${dir.path}/blobs`, { recursive: true, encoding: "utf8" });
  for (const name of kept) expect(name).toMatch(/^(incoming|[0-9a-f]{2}(\/[0-9a-f]{64})?)$/);
});
