// What a worker finds when it looks at a file of a staged version: a bad sector is the disk's fault, and not the version's.

import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { BlobBodies } from "../../../../src/agent/accelerator/files/bodies.ts";
import { HostTable } from "../../../../src/agent/accelerator/pool/host-table.ts";
import { answerProbes } from "../../../../src/agent/accelerator/pool/probing.ts";
import { blobPath } from "../../../../src/core/blob-path.ts";
import { parseSha256 } from "../../../../src/core/ids.ts";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { encodeManifestTable, ManifestTable } from "../../../../src/core/serving/manifest-table.ts";
import { planProbes, probeFault } from "../../../../src/core/serving/plan-probes.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { stateOf } from "../edge.ts";

const host = "www.example.com";

/** A table with one host, whose only file cannot be read for this reason. */
function tableFailingWith(code: string): HostTable {
  const file = {
    size: 4,
    digest: "0".repeat(64),
    body: async () => {
      throw Object.assign(new Error(`${code}: read`), { code });
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
  const routes = { redirect: () => undefined, cache: () => undefined };
  const compiled = { site: { index: [] }, files: { find: async () => file }, routes };
  const route = () => ({ kind: "served", host: { name: host }, compiled });
  return { route } as unknown as HostTable;
}

test.each([
  ["EIO", { kind: "damaged" }],
  ["EMFILE", { kind: "failed", reason: "EMFILE: read" }],
])("a file whose reading fails with %s", async (code, answer) => {
  const probes = [{ host, path: "index.html" }];
  expect(await answerProbes(tableFailingWith(code), probes)).toEqual([answer]);
});

const files = ["index.html", "app.html", "404.html"];

/** What a worker finds at `/`, and what it is to find. */
async function rootOf(site: SiteInput, names: readonly string[]) {
  using dir = tempDir();
  const stored = names.map((path) => {
    const sha256 = parseSha256(createHash("sha256").update(path).digest("hex"));
    if (sha256 === undefined) throw new Error("no digest");
    mkdirSync(dirname(blobPath(dir.path, sha256)), { recursive: true });
    writeFileSync(blobPath(dir.path, sha256), path);
    return { path, sha256, size: path.length, mime: "text/html" };
  });
  const table = encodeManifestTable(stored);
  const state = stateOf(1, site, { kind: "manifest", table, prefix: "" });
  const hosts = new HostTable(state, {
    defaultDomain: null,
    bodies: new BlobBodies({ blobsDir: dir.path, memoryMax: 0 }),
    nowMs: () => 0,
  });
  const probes = planProbes(
    state.domains[0]?.hosts ?? [],
    "ab".repeat(32),
    (shared) => new ManifestTable(shared),
  );
  const answers = await answerProbes(hosts, probes);
  const faults = probes.map((probe, i) => probeFault(probe, answers[i]));
  const [root] = answers;
  const name = names.find(
    (path) =>
      root?.kind === "file" && root.digest === createHash("sha256").update(path).digest("hex"),
  );
  return { faults: faults.filter((fault) => fault !== undefined), root: name ?? root?.kind };
}

const backend = { urls: ["http://127.0.0.1:1"] };

// As the visitor of `/` would: what the plan of a request says, on both sides.
test.each<[string, SiteInput, readonly string[]]>([
  ["index.html", {}, files],
  ["app.html", { single_page: "app.html" }, ["app.html", "404.html"]],
  ["none", { single_page: "app.html", backend }, ["app.html", "404.html"]],
  ["none", { single_page: "no.html", not_found: "404.html" }, ["app.html", "404.html"]],
  ["none", { redirects: [{ from: "/", to: "/en/", status: 302 }] }, files],
  ["index.html", { tls: { redirect_http: true } }, files],
  ["none", { index: [".hidden"] }, [".hidden"]],
])("%s answers `/` of %j with %j", async (root, site, names) => {
  expect(await rootOf(site, names)).toEqual({ root, faults: [] });
});
