// What a version is asked before it may serve, and what counts as an answer.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { effectiveDevlove, type SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import { parseSha256, type Sha256 } from "../../../src/core/ids.ts";
import { encodeManifestTable, ManifestTable } from "../../../src/core/serving/manifest-table.ts";
import { planProbes, probeFault, type ProbeAnswer } from "../../../src/core/serving/plan-probes.ts";
import type { ServedHost, Views } from "../../../src/core/serving/serving-state.ts";

function digest(no: number): Sha256 {
  const sha256 = parseSha256(no.toString(16).padStart(64, "0"));
  if (sha256 === undefined) throw new Error(`${no} makes no digest`);
  return sha256;
}

const file = (path: string, no: number, size = no) => ({
  path,
  sha256: digest(no),
  size,
  mime: "text/plain",
});

function hostOf(name: string, views: Views, site: SiteInput | null = {}): ServedHost {
  const config = site === null ? null : effectiveDevlove({ domains: { [name]: site } }, name, null);
  return {
    name,
    site: config,
    views,
    bots: {
      mode: "enforce",
      unknownBotsCanAccess: null,
      allow: new Set(),
      deny: new Set(),
      vip: [],
      bad: [],
    },
  };
}

const viewsOf = (files: readonly ReturnType<typeof file>[], prefix = ""): Views => ({
  kind: "manifest",
  table: encodeManifestTable(files),
  prefix,
});

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const open = (table: SharedArrayBuffer) => new ManifestTable(table);
const plan = (hosts: readonly ServedHost[], manifest = sha256("one")) =>
  planProbes(hosts, manifest, open);

test("a host is asked for its root and for files: the first, the last and the largest among them", () => {
  const files = Array.from({ length: 200 }, (_, i) =>
    file(`f${String(i).padStart(3, "0")}`, i + 1),
  );
  const views = viewsOf([...files, file("index.html", 900), file("g", 901, 99_999)]);
  const probes = plan([hostOf("a.example", views)]);
  expect(probes[0]).toEqual({
    host: "a.example",
    path: null,
    expected: { kind: "file", digest: digest(900), size: 900 },
  });
  const paths = probes.slice(1).map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(["f000", "index.html", "g"]));
  expect(paths.length).toBeGreaterThan(10);
  expect(paths.length).toBeLessThanOrEqual(20);
  // The same version is asked the same, another one something else.
  expect(plan([hostOf("a.example", views)])).toEqual(probes);
  expect(plan([hostOf("a.example", views)], sha256("two"))).not.toEqual(probes);
});

test("only files of its own views are asked of a host", () => {
  const views = viewsOf(
    [file("a/x", 1), file("sub/index.html", 2), file("sub/y", 3), file("z", 4)],
    "sub/",
  );
  const probes = plan([hostOf("sub.a.example", views)]);
  expect(probes[0]?.expected).toMatchObject({ digest: digest(2) });
  expect(new Set(probes.map(({ path }) => path))).toEqual(new Set([null, "index.html", "y"]));
});

test("the index that answers is the first that is there and not hidden", () => {
  const files = [file("b.html", 1), file("c.html", 2), file(".hidden.html", 3)];
  const index = [".hidden.html", "a.html", "c.html", "b.html"];
  const [root] = plan([hostOf("a.example", viewsOf(files), { index })]);
  expect(root?.expected).toMatchObject({ kind: "file", digest: digest(2) });
  const [none] = plan([hostOf("a.example", viewsOf(files))]);
  expect(none?.expected).toEqual({ kind: "none" });
});

test("without an index, `/` is answered by the single page where there is no backend", () => {
  const views = viewsOf([file("app.html", 1), file("b.html", 2)]);
  const backend = { urls: ["http://127.0.0.1:1"] };
  const page = { single_page: "app.html" };
  const rootOf = (site: SiteInput) => plan([hostOf("a.example", views, site)])[0];
  const expected = { kind: "file", digest: digest(1), size: 1 };
  expect(rootOf(page)).toEqual({ host: "a.example", path: null, expected });
  expect(rootOf({ ...page, backend })?.expected).toEqual({ kind: "none" });
  expect(rootOf({ single_page: "no.html", not_found: "b.html" })?.expected).toEqual({
    kind: "none",
  });
});

test("where `/` is redirected no file answers it, and the index file is asked for by its name", () => {
  const views = viewsOf([
    file("index.html", 1),
    ...Array.from({ length: 100 }, (_, i) => file(`f${i}`, i + 2)),
  ]);
  const redirects = [{ from: "/", to: "/en/", status: 302 as const }];
  const [root, index] = plan([hostOf("a.example", views, { redirects })]);
  expect(root).toEqual({ host: "a.example", path: null, expected: { kind: "none" } });
  const expected = { kind: "file", digest: digest(1), size: 1 };
  expect(index).toEqual({ host: "a.example", path: "index.html", expected });
});

test("views of the host's own may hold anything; without devlove nothing is asked", () => {
  const directory = { kind: "directory", root: "/srv" } as const;
  const hosts = [
    hostOf("a.example", directory),
    hostOf("b.example", { kind: "none" }),
    hostOf("c.example", directory, null),
  ];
  expect(plan(hosts)).toEqual([
    { host: "a.example", path: null, expected: null },
    { host: "b.example", path: null, expected: { kind: "none" } },
  ]);
});

test("hundreds of hosts are asked for their roots, and not all of them for files", () => {
  const views = viewsOf([file("index.html", 1), file("x", 2)]);
  const names = Array.from({ length: 600 }, (_, i) => `h${i}.a.example`);
  const probes = plan(names.map((name) => hostOf(name, views)));
  expect(probes.filter(({ path }) => path === null).map(({ host }) => host)).toEqual(names);
  expect(probes.length).toBeLessThan(600 + 400);
});

const expected = { kind: "file", digest: digest(1), size: 5 } as const;
test.each<
  [ProbeAnswer | undefined, Parameters<typeof probeFault>[0]["expected"], string | undefined]
>([
  [expected, expected, undefined],
  [{ ...expected, size: 6 }, expected, "another file"],
  [{ ...expected, digest: digest(2) }, expected, "another file"],
  [{ kind: "none" }, expected, "the file is not found"],
  [{ kind: "failed", reason: "EIO" }, expected, "EIO"],
  [{ kind: "damaged" }, expected, "is damaged on this disk"],
  [undefined, expected, "was not answered"],
  [expected, { kind: "none" }, "there should be no file"],
  [{ kind: "none" }, { kind: "none" }, undefined],
  [expected, null, undefined],
  [{ kind: "none" }, null, undefined],
  [{ kind: "failed", reason: "EIO" }, null, "EIO"],
])("%j where %j is expected: %s", (answer, wanted, fault) => {
  const said = probeFault({ host: "a.example", path: "x", expected: wanted }, answer);
  if (fault === undefined) expect(said).toBeUndefined();
  else expect(said).toMatch(new RegExp(`^a\\.example "x".*${fault}`));
});
