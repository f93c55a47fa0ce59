// How an import ends: the agent's receipt makes a viewset version of what it uploaded, or the import fails with the reason.

import { expect, test } from "vitest";
import { canonicalJson } from "../../../src/core/canonical-json.ts";
import type { Receipt } from "../../../src/wire/receipt.ts";
import { seedSite, startAgentSide, type AgentSide } from "../../support/agent-side.ts";

const devlove = JSON.stringify({ domains: { "www.example.test": {} } });

async function started() {
  const side = await startAgentSide();
  const seeded = await seedSite(side.store);
  const seq = await startImport(side, seeded, "i1", "v1");
  return { side, ...seeded, seq };
}

async function startImport(
  side: AgentSide,
  { siteId, domainId }: { siteId: number; domainId: number },
  id: string,
  viewset_name: string,
): Promise<number> {
  await side.store
    .insertInto("imports")
    .values({
      id,
      domain_id: domainId,
      deployment_site_id: siteId,
      viewset_name,
      state: "started",
      error: null,
      viewset_id: null,
      files: null,
      bytes: null,
      when_started: "2030-01-15T11:00:00.000Z",
      when_ended: null,
    })
    .execute();
  return side.append(siteId, "viewset.import", { import_id: id, domain: "www.example.test" });
}

type Parts = {
  content?: string;
  schema?: string;
  files?: null | readonly { text: string; path: string }[];
};

/** Uploads what an agent would; the digest of the manifest. */
async function upload(side: AgentSide, parts: Parts = {}): Promise<string> {
  const {
    content = devlove,
    schema = "devlove/1",
    files = [{ text: "hello", path: "index.html" }],
  } = parts;
  const entries = [];
  for (const { text, path } of files ?? [])
    entries.push({
      path,
      sha256: await side.blobs.put(Buffer.from(text)),
      size: text.length,
      mime: "text/html",
    });
  const sha256 = await side.blobs.put(Buffer.from(content));
  const manifest = { devlove: { schema, sha256 }, files: files === null ? null : entries };
  return side.blobs.put(Buffer.from(canonicalJson(manifest)));
}

function receipt(
  seq: number,
  detail: Receipt["detail"],
  phase: Receipt["phase"] = "applied",
): Receipt {
  return { seq, phase, detail, took_ms: 5 };
}

async function importRow(side: AgentSide, id = "i1") {
  return side.store
    .selectFrom("imports")
    .select(["state", "error", "viewset_id", "files", "bytes", "when_ended"])
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
}

async function versions(side: AgentSide) {
  return side.store
    .selectFrom("viewsets")
    .innerJoin("devlove_files", "devlove_files.viewset_id", "viewsets.id")
    .select(["viewsets.name", "files_blob", "manifest_blob", "schema_id", "content"])
    .execute();
}

test("an applied import is a version of the domain, once", async () => {
  const { side, siteId, seq } = await started();
  await using _ = side;
  const manifest = await upload(side);
  const applied = receipt(seq, { import_id: "i1", manifest, files: 1, bytes: 5 });
  await side.agentStore.saveReceipts(siteId, "instance-1", [applied]);
  const expected = [
    {
      name: "v1",
      files_blob: manifest,
      manifest_blob: null,
      schema_id: "devlove/1",
      content: devlove,
    },
  ];
  expect(await versions(side)).toEqual(expected);
  const row = await importRow(side);
  expect(row).toMatchObject({ state: "done", error: null, files: 1, bytes: 5 });
  expect(row.when_ended).toBe(side.clock.now().toISOString());
  // Repeated, from another instance, or with another outcome: it has ended.
  await side.agentStore.saveReceipts(siteId, "instance-1", [applied]);
  await side.agentStore.saveReceipts(siteId, "instance-2", [applied]);
  await side.agentStore.saveReceipts(siteId, "instance-2", [
    receipt(seq, { reason: "late" }, "failed"),
  ]);
  expect(await versions(side)).toEqual(expected);
  expect(await importRow(side)).toEqual(row);
});

test("a manifest without views makes a version without views", async () => {
  const { side, siteId, seq } = await started();
  await using _ = side;
  const manifest = await upload(side, { files: null });
  await side.agentStore.saveReceipts(siteId, "instance-1", [receipt(seq, { manifest })]);
  expect(await versions(side)).toMatchObject([{ name: "v1", files_blob: null }]);
});

test("an import fails with the reason, and makes no version", async () => {
  const { side, siteId, domainId } = await started();
  await using _ = side;
  const site = { siteId, domainId };
  const absent = "f".repeat(64);
  const odd = async (content: unknown) => side.blobs.put(Buffer.from(JSON.stringify(content)));
  const missing = { path: "a", sha256: absent, size: 1, mime: "text/html" };
  const devloveBlob = { schema: "devlove/1", sha256: await side.blobs.put(Buffer.from(devlove)) };
  const rows: readonly (readonly [Receipt["detail"], Receipt["phase"], RegExp])[] = [
    [{ reason: "no views_dir" }, "failed", /^no views_dir$/],
    [{}, "refused", /^the agent refused it$/],
    [{}, "applied", /manifest .* not uploaded/],
    [{ manifest: absent }, "applied", /manifest .* not uploaded/],
    [{ manifest: await odd("?") }, "applied", /^the manifest is not valid/],
    [{ manifest: await side.blobs.put(Buffer.from("{")) }, "applied", /^the manifest is not valid/],
    [
      { manifest: await odd({ devlove: devloveBlob, files: [missing] }) },
      "applied",
      /^1 files of the manifest were not uploaded$/,
    ],
    [
      { manifest: await odd({ devlove: { ...devloveBlob, sha256: absent }, files: [] }) },
      "applied",
      /^the devlove file was not uploaded/,
    ],
    [{ manifest: await upload(side, { content: "{" }) }, "applied", /devlove file is not valid/],
    [{ manifest: await upload(side, { schema: "devlove/9" }) }, "applied", /devlove\/9/],
    [
      { manifest: await upload(side, { content: '{"domains":{"evil.example.test":{}}}' }) },
      "applied",
      /devlove file is not valid: .*evil\.example\.test/,
    ],
  ];
  for (const [at, [detail, phase, reason]] of rows.entries()) {
    const seq = await startImport(side, site, `f${at}`, `f${at}`);
    await side.agentStore.saveReceipts(siteId, "instance-1", [receipt(seq, detail, phase)]);
    expect(await importRow(side, `f${at}`)).toMatchObject({
      state: "failed",
      error: expect.stringMatching(reason),
      viewset_id: null,
    });
  }
  expect(await versions(side)).toEqual([]);
});

test("a name taken meanwhile fails the import", async () => {
  const { side, siteId, domainId, seq } = await started();
  await using _ = side;
  const manifest = await upload(side);
  const second = await startImport(side, { siteId, domainId }, "i2", "v1");
  await side.agentStore.saveReceipts(siteId, "instance-1", [
    receipt(seq, { manifest }),
    receipt(second, { manifest }),
  ]);
  expect(await importRow(side)).toMatchObject({ state: "done" });
  expect(await importRow(side, "i2")).toMatchObject({
    state: "failed",
    error: "the domain has a viewset named v1 already",
  });
  expect(await versions(side)).toHaveLength(1);
});

test("receipts of other entries, of snapshots and of other sites end no import", async () => {
  const { side, siteId, seq } = await started();
  await using _ = side;
  const manifest = await upload(side);
  const clear = await side.append(siteId, "cache.clear", {
    clear_id: "c1",
    domain: "www.example.test",
    host: null,
    patterns: ["a"],
  });
  const other = await seedSite(side.store, "ffffffffffffffff");
  await side.append(other.siteId, "domains.changed", { domains: [] });
  const detail = { import_id: "i1", manifest };
  await side.agentStore.saveReceipts(siteId, "instance-1", [receipt(clear, detail)]);
  await side.agentStore.saveReceipts(siteId, "instance-1", [receipt(seq, { snapshot: true })]);
  await side.agentStore.saveReceipts(other.siteId, "instance-1", [receipt(1, detail)]);
  expect(await importRow(side)).toMatchObject({ state: "started" });
});
