// Central judges a manifest of very many files beside its main thread: others are answered meanwhile.

import { expect, test } from "vitest";
import { canonicalJson } from "../../../src/core/journal/canonical-json.ts";
import { seedSite, startAgentSide, startImport } from "../../support/agent-side.ts";

/** Much less than are answered while a thread judges; more than come in between the steps around it. */
const answeredLeast = 100;

test("others are answered while a manifest of 100,000 files is judged", async () => {
  await using side = await startAgentSide();
  const seeded = await seedSite(side.store);
  const { siteId } = seeded;
  const seq = await startImport(side, seeded, { id: "i1", name: "large" });
  const content = await side.blobs.put(Buffer.from("content"));
  const devlove = await side.blobs.put(Buffer.from('{"domains":{}}'));
  const files = Array.from({ length: 100_000 }, (_, no) => ({
    path: `Section-${no % 100}/page-${no}.html`,
    sha256: content,
    size: 7,
    mime: "text/html",
  }));
  const text = canonicalJson({ devlove: { schema: "devlove/1", sha256: devlove }, files });
  const manifest = await side.blobs.put(Buffer.from(text));
  const state = { isJudged: false };
  const receipt = { seq, phase: "applied", detail: { manifest }, took_ms: 5 } as const;
  const judged = side.agentStore
    .saveReceipts(siteId, "instance-1", [receipt])
    .then(() => (state.isJudged = true));
  let answered = 0;
  while (!state.isJudged) {
    expect((await fetch(`${side.url}/journal`)).status).toBe(401);
    answered++;
  }
  await judged;
  expect(answered).toBeGreaterThan(answeredLeast);
  const row = await side.store
    .selectFrom("imports")
    .select(["state", "error", "files", "bytes"])
    .executeTakeFirstOrThrow();
  expect(row).toEqual({ state: "done", error: null, files: 100_000, bytes: 700_000 });
}, 120_000);
