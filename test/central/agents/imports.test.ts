// How an import ends: the agent's receipt makes a viewset version of what it uploaded, or the import fails with the reason.

import { truncate } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { startImportDeadlines } from "../../../src/central/jobs/import-deadlines.ts";
import {
  failOverdueImports,
  overdue,
} from "../../../src/central/store/content/import-deadlines.ts";
import { failLeftOver } from "../../../src/central/store/content/import-without.ts";
import { canonicalJson, type Json } from "../../../src/core/journal/canonical-json.ts";
import type { Receipt } from "../../../src/wire/receipt.ts";
import { seedSite, startAgentSide, startImport, type AgentSide } from "../../support/agent-side.ts";
import { until } from "../../support/until.ts";

const devlove = JSON.stringify({ domains: { "www.example.test": {} } });

async function started() {
  const side = await startAgentSide();
  const seeded = await seedSite(side.store);
  const seq = await startImport(side, seeded, { id: "i1", name: "v1" });
  return { side, ...seeded, seq };
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
  const odd = async (content: Json) => side.blobs.put(Buffer.from(canonicalJson(content)));
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
    const seq = await startImport(side, site, { id: `f${at}`, name: `f${at}` });
    await side.agentStore.saveReceipts(siteId, "instance-1", [receipt(seq, detail, phase)]);
    expect(await importRow(side, `f${at}`)).toMatchObject({
      state: "failed",
      error: expect.stringMatching(reason),
      viewset_id: null,
    });
  }
  expect(await versions(side)).toEqual([]);
});

const entry = { sha256: "a".repeat(64), size: 1, mime: "text/html" };

test.each<[name: string, files: readonly Readonly<Record<string, Json>>[], reason: RegExp]>([
  ["leaves the root", [{ ...entry, path: "../a" }], /"\.\.\/a" is no path below the root/],
  ["is absolute", [{ ...entry, path: "/etc/passwd" }], /no path below the root/],
  ["has an empty segment", [{ ...entry, path: "a//b" }], /no path below the root/],
  ["holds a NUL", [{ ...entry, path: "a\0b" }], /no path below the root/],
  ["is half a character", [{ ...entry, path: "\ud800" }], /no path below the root/],
  [
    "stands twice",
    [
      { ...entry, path: "a" },
      { ...entry, path: "a" },
    ],
    /"a" stands twice/,
  ],
  [
    "differs from another only in case",
    [{ path: "Read.me" }, { path: "read.me" }],
    /^the manifest is not valid: "read\.me" and "Read\.me" differ only in case$/,
  ],
  ["is of 5,000 characters", [{ ...entry, path: "a".repeat(5_000) }], /\/files\/0\/path/],
  ["has a digest that is none", [{ ...entry, path: "a", sha256: "x" }], /\/files\/0\/sha256/],
  ["has a negative size", [{ ...entry, path: "a", size: -1 }], /\/files\/0\/size/],
  ["has another size than its content", [{ path: "a", size: 4 }], /"a" has another size than/],
  [
    "has one content with two sizes",
    [{ path: "a" }, { path: "b", size: 9 }],
    /"b" has another size than/,
  ],
])("a manifest whose path %s makes no version", async (_, files, reason) => {
  const { side, siteId, seq } = await started();
  await using _side = side;
  const own = { sha256: await side.blobs.put(Buffer.from("hello")), size: 5, mime: "text/html" };
  const sha256 = await side.blobs.put(Buffer.from(devlove));
  const whole = files.map((file) => ({ ...own, ...file }));
  const manifest = { devlove: { schema: "devlove/1", sha256 }, files: whole };
  const detail = { manifest: await side.blobs.put(Buffer.from(canonicalJson(manifest))) };
  await side.agentStore.saveReceipts(siteId, "instance-1", [receipt(seq, detail)]);
  expect(await importRow(side)).toMatchObject({
    state: "failed",
    error: expect.stringMatching(reason),
  });
  expect(await versions(side)).toEqual([]);
});

test("a manifest that says the same in other bytes makes no version: what is judged is what is activated", async () => {
  const { side, siteId, domainId } = await started();
  await using _ = side;
  const sha256 = await side.blobs.put(Buffer.from(devlove));
  const [said, other] = [
    { schema: "devlove/1", sha256 },
    { schema: "x", sha256: "0".repeat(64) },
  ];
  const texts = [
    JSON.stringify({ files: [], devlove: said }),
    `${canonicalJson({ devlove: said, files: [] })}\n`,
    // The last of two members counts for whoever parses, the first for whoever reads the beginning.
    `{"devlove":${canonicalJson(other)},"files":[],"devlove":${canonicalJson(said)}}`,
  ];
  for (const [at, text] of texts.entries()) {
    const seq = await startImport(side, { siteId, domainId }, { id: `c${at}`, name: `c${at}` });
    const detail = { manifest: await side.blobs.put(Buffer.from(text)) };
    await side.agentStore.saveReceipts(siteId, "instance-1", [receipt(seq, detail)]);
    const error = "the manifest is not valid: it is not canonical JSON";
    expect(await importRow(side, `c${at}`)).toMatchObject({ state: "failed", error });
  }
});

test.each([
  ["manifest", 300 * 2 ** 20, /^the manifest has more than \d+ bytes$/],
  ["devlove", 2 * 2 ** 20, /^the devlove file was not uploaded, is too large/],
])("a %s that is too large is not read", async (what, size, reason) => {
  const { side, siteId, seq } = await started();
  await using _ = side;
  const huge = await side.blobs.put(Buffer.from("x"));
  await truncate(join(side.stateDir, "blobs", huge.slice(0, 2), huge), size);
  await side.store.updateTable("blobs").set({ size }).where("sha256", "=", huge).execute();
  const named = { devlove: { schema: "devlove/1", sha256: huge }, files: [] };
  const manifest =
    what === "manifest" ? huge : await side.blobs.put(Buffer.from(canonicalJson(named)));
  await side.agentStore.saveReceipts(siteId, "instance-1", [receipt(seq, { manifest })]);
  expect(await importRow(side)).toMatchObject({ error: expect.stringMatching(reason) });
});

test("a name taken meanwhile fails the import", async () => {
  const { side, siteId, domainId, seq } = await started();
  await using _ = side;
  const manifest = await upload(side);
  const second = await startImport(side, { siteId, domainId }, { id: "i2", name: "v1" });
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

test("an import from a deployment whose agent never connected fails after ten minutes, in words; a late receipt changes nothing", async () => {
  const { side, siteId, seq } = await started();
  await using _ = side;
  const giveUp = async (iso: string) => failOverdueImports(side.store, new Date(iso));
  expect(await giveUp("2030-01-15T11:09:59.999Z")).toBe(0);
  expect(await importRow(side)).toMatchObject({ state: "started" });
  expect(await giveUp("2030-01-15T11:10:00.000Z")).toBe(1);
  const failed = {
    state: "failed",
    error: `the agent of deployment site ${siteId} has never connected: the import was given up after 10 minutes`,
    when_ended: "2030-01-15T11:10:00.000Z",
  };
  expect(await importRow(side)).toMatchObject(failed);
  expect(await giveUp("2030-01-15T11:20:00.000Z")).toBe(0);
  const manifest = await upload(side);
  await side.agentStore.saveReceipts(siteId, "instance-1", [receipt(seq, { manifest })]);
  expect(await importRow(side)).toMatchObject(failed);
  expect(await versions(side)).toEqual([]);
});

test.each<readonly [string, string, string, string | undefined]>([
  ["away for less than a day", "2030-01-15T11:01:00.000Z", "2030-01-16T11:00:00.000Z", undefined],
  [
    "away for a day",
    "2030-01-15T11:01:00.000Z",
    "2030-01-16T11:01:00.000Z",
    "the agent of deployment site 7 was last seen at 2030-01-15T11:01:00.000Z: the import was given up after 24 hours",
  ],
  [
    "away for long, asked just now",
    "2029-01-01T00:00:00.000Z",
    "2030-01-16T10:59:59.999Z",
    undefined,
  ],
  ["in touch, for days", "2030-01-19T11:00:00.000Z", "2030-01-19T11:03:00.000Z", undefined],
])("an import whose agent is %s", (_, seen, now, reason) => {
  expect(overdue(7, { started: "2030-01-15T11:00:00.000Z", seen }, new Date(now))).toBe(reason);
});

test("overdue imports are looked for at the start and from then on", async () => {
  let calls = 0;
  const failOverdue = async (): Promise<number> => {
    calls += 1;
    if (calls === 2) throw new Error("the store is busy");
    return 0;
  };
  await using _ = startImportDeadlines({
    failOverdue,
    now: () => new Date(),
    log: silentLog(),
    intervalMs: 5,
  });
  expect(await until("a failed run is not the last", () => calls > 3 && calls)).toBeGreaterThan(3);
  expect(calls).toBeGreaterThan(3);
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

const noSite = {
  reason:
    "the settings of this agent name no views_dir and devlove_file of www.example.test (sites)",
  code: "IMPORT_NO_SITE",
};

/** Says that an instance was seen a moment ago, or at another time. */
async function seen(
  { store }: AgentSide,
  siteId: number,
  instanceId: string,
  { at = "2030-01-15T11:00:00.000Z", serverName = "" } = {},
): Promise<void> {
  const values = { last_seen: at, edge: JSON.stringify({ server_name: serverName }) };
  await store
    .insertInto("instances")
    .values({
      deployment_site_id: siteId,
      instance_id: instanceId,
      agent_version: "0.1.0",
      last_report: null,
      epoch: null,
      applied_seq: 0,
      chain: null,
      oldest_unfinished: null,
      position_at: null,
      logs_confirmed_at: null,
      ...values,
    })
    .onConflict((conflict) =>
      conflict.columns(["deployment_site_id", "instance_id"]).doUpdateSet(values),
    )
    .execute();
}

test("where one host of a site has the directory, the others leave the import to it", async () => {
  const { side, siteId, seq } = await started();
  await using _ = side;
  await seen(side, siteId, "e1", { at: side.clock.now().toISOString() });
  await side.agentStore.saveReceipts(siteId, "e2", [receipt(seq, noSite, "refused")]);
  expect(await importRow(side)).toMatchObject({ state: "started", error: null });
  const manifest = await upload(side);
  await side.agentStore.saveReceipts(siteId, "e1", [receipt(seq, { manifest })]);
  expect(await importRow(side)).toMatchObject({ state: "done" });
  await side.agentStore.saveReceipts(siteId, "e3", [receipt(seq, noSite, "refused")]);
  expect(await importRow(side)).toMatchObject({ state: "done" });
});

test("where no host in touch has the directory, the import fails and names them; what fails in another way fails at once", async () => {
  const { side, siteId, domainId, seq } = await started();
  await using _ = side;
  const now = side.clock.now().toISOString();
  await seen(side, siteId, "e1".padEnd(32, "0"), { at: now, serverName: "edge-1" });
  await seen(side, siteId, "e9".padEnd(32, "0"), { at: "2030-01-15T10:00:00.000Z" });
  const says = async (id: string, of: number, detail: Receipt["detail"]): Promise<void> =>
    side.agentStore.saveReceipts(siteId, id.padEnd(32, "0"), [receipt(of, detail, "refused")]);
  await says("e2", seq, noSite);
  expect(await importRow(side)).toMatchObject({ state: "started" });
  await says("e1", seq, noSite);
  expect(await importRow(side)).toMatchObject({
    state: "failed",
    error:
      "the settings of none of e2000000, edge-1 name a views_dir and devlove_file of www.example.test (sites); not in touch: e9000000",
  });
  const second = await startImport(side, { siteId, domainId }, { id: "i2", name: "v2" });
  await says("e2", second, noSite);
  await says("e1", second, { reason: "no room", code: "VIEWSET_NO_ROOM" });
  expect(await importRow(side, "i2")).toMatchObject({ state: "failed", error: "no room" });
});

test("an import that was left to a host that went away fails when that is out of touch", async () => {
  const { side, siteId, seq } = await started();
  await using _ = side;
  const start = side.clock.now().getTime();
  const at = (ms: number): string => new Date(start + ms).toISOString();
  await seen(side, siteId, "e1", { at: at(0), serverName: "edge-1" });
  await side.agentStore.saveReceipts(siteId, "e2", [receipt(seq, noSite, "refused")]);
  expect(await failLeftOver(side.store, new Date(start + 170_000))).toBe(0);
  await seen(side, siteId, "e2", { at: at(190_000), serverName: "edge-2" });
  expect(await failLeftOver(side.store, new Date(start + 190_000))).toBe(1);
  expect(await importRow(side)).toMatchObject({
    state: "failed",
    error:
      "the settings of edge-2 name no views_dir and devlove_file of www.example.test (sites); not in touch: edge-1",
  });
});
