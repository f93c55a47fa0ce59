// Request logs over HTTP: encodings, refusals that make the agent bisect or wait, and reading back.

import { request } from "node:http";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { readLogs } from "../../../src/central/agents/log-reader.ts";
import {
  name16,
  secret16,
  seedSite,
  startAgentSide,
  type AgentSide,
} from "../../support/agent-side.ts";
import {
  batchText,
  connectAgent,
  reportOf,
  requestRecord,
  type FakeAgent,
} from "../../support/fake-agent.ts";
import { shownPaths } from "../../support/shown-paths.ts";

const laneHeader = "00000000000000e1/1";

async function started() {
  const side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  const agent = await connectAgent(side.url, name16, secret16);
  return { side, siteId, agent };
}

type Sent = {
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly headers?: Record<string, string>;
};

async function send(agent: FakeAgent, first: number, last: number, sent: Sent = {}) {
  const answer = await agent.call("/request-logs", {
    method: "POST",
    headers: {
      "accel-lane": laneHeader,
      "accel-first-seq": String(first),
      "accel-last-seq": String(last),
      ...sent.headers,
    },
    body: sent.body ?? batchText(first, last),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

async function paths(side: AgentSide, siteId: number): Promise<readonly string[]> {
  const query = { deploymentSiteId: siteId, domain: "www.example.test", limit: 1000 };
  return shownPaths((await readLogs(side.thread, query)).logs);
}

test("batches in each encoding are committed, repeated ones acknowledged, others refused with the mark", async () => {
  const { side, siteId, agent } = await started();
  await using _ = side;
  expect(await send(agent, 1, 2)).toEqual({ status: 200, body: { committed_through: 2 } });
  const gzip = {
    body: new Uint8Array(gzipSync(batchText(3, 3))),
    headers: { "content-encoding": "gzip" },
  };
  expect(await send(agent, 3, 3, gzip)).toEqual({ status: 200, body: { committed_through: 3 } });
  const zstd = {
    body: new Uint8Array(zstdCompressSync(batchText(4, 5))),
    headers: { "content-encoding": "zstd" },
  };
  expect(await send(agent, 4, 5, zstd)).toEqual({ status: 200, body: { committed_through: 5 } });
  expect(await send(agent, 4, 5, zstd)).toEqual({ status: 200, body: { committed_through: 5 } });
  expect(await send(agent, 5, 7)).toMatchObject({
    status: 409,
    body: { code: "conflict", mark: 5 },
  });
  expect(await send(agent, 9, 9)).toMatchObject({
    status: 409,
    body: { code: "conflict", mark: 5 },
  });
  expect(await paths(side, siteId)).toEqual(["/5", "/4", "/3", "/2", "/1"]);
  expect(await side.registry.metrics()).toContain("accel_central_log_records_total 5");
});

test("what cannot be taken is refused with a status that tells what to do", async () => {
  const { side, siteId, agent } = await started();
  await using _ = side;
  const status = async (sent: Sent, first = 1, last = 1) =>
    (await send(agent, first, last, sent)).status;
  expect(await status({ headers: { "accel-lane": "x" } })).toBe(400);
  expect(await status({ headers: { "accel-first-seq": "0" } })).toBe(400);
  expect(await status({}, 2, 1)).toBe(400);
  expect(await status({ headers: { "content-encoding": "br" } })).toBe(415);
  const torn = zstdCompressSync(batchText(1, 1)).subarray(0, -4);
  expect(
    await status({ body: new Uint8Array(torn), headers: { "content-encoding": "zstd" } }),
  ).toBe(400);
  const bomb = new Uint8Array(zstdCompressSync(Buffer.alloc(64 * 2 ** 20)));
  expect(bomb.byteLength).toBeLessThan(100_000);
  expect(await status({ body: bomb, headers: { "content-encoding": "zstd" } })).toBe(413);
  expect(await status({ body: "x".repeat(5 * 2 ** 20) })).toBe(413);
  const line = await send(agent, 1, 2, { body: `${batchText(1, 1)}{"a":1}` });
  expect(line).toMatchObject({
    status: 400,
    body: { code: "invalid", message: expect.stringContaining("line 2") },
  });
  expect(await paths(side, siteId)).toEqual([]);
  expect(await status({})).toBe(200);
});

test("a torn upload commits nothing", async () => {
  const { side, siteId, agent } = await started();
  await using _ = side;
  const body = batchText(1, 3);
  const { promise, resolve } = Promise.withResolvers<void>();
  const upload = request(new URL(`${side.url}/request-logs`), {
    method: "POST",
    headers: {
      authorization: `Bearer ${agent.token.access_token}`,
      "accel-lane": laneHeader,
      "accel-first-seq": "1",
      "accel-last-seq": "3",
      "content-length": String(body.length),
    },
  });
  upload.on("error", () => resolve());
  upload.write(body.slice(0, -10), () => upload.destroy(new Error("torn")));
  await promise;
  expect(await paths(side, siteId)).toEqual([]);
  expect((await send(agent, 1, 3)).status).toBe(200);
});

test("a delivery is credited to the instance that made it; one that does not say who it is counts only where it can be no other", async () => {
  const { side, siteId, agent } = await started();
  await using _ = side;
  const deliver = async (seq: number, instance?: string) => {
    side.clock.ms += 10_000; // Noted at most so often.
    const headers = instance === undefined ? undefined : { "accel-instance": instance };
    const { status } = await send(agent, seq, seq, headers && { headers });
    expect(status).toBe(200);
  };
  const credited = async () => {
    const rows = await side.store.selectFrom("instances").selectAll().execute();
    const now = side.clock.now().toISOString();
    return rows.filter((row) => row.logs_confirmed_at === now).map((row) => row.instance_id);
  };
  for (const instance of ["instance-1", "instance-2"])
    await side.agentStore.saveReport(siteId, reportOf(instance, 5));
  await deliver(1, "instance-1");
  expect(await credited()).toEqual(["instance-1"]);
  // Noted at most every 10 s, of each by itself.
  side.clock.ms += 9_000;
  for (const [seq, instance] of [
    [6, "instance-1"],
    [7, "instance-2"],
  ] as const) {
    const headers = { "accel-lane": `00000000000000e1/${seq}`, "accel-instance": instance };
    expect((await send(agent, 1, 1, { headers })).status).toBe(200);
  }
  expect(await credited()).toEqual(["instance-2"]);
  side.clock.ms += 1_000;
  await send(agent, 2, 2, {
    headers: { "accel-lane": "00000000000000e1/6", "accel-instance": "instance-1" },
  });
  expect(await credited()).toEqual(["instance-1"]);
  await deliver(2);
  expect(await credited()).toEqual([]);
  side.clock.ms += 180_001;
  await side.agentStore.saveReport(siteId, reportOf("instance-2", 5));
  await deliver(3);
  expect(await credited()).toEqual(["instance-2"]);
  await deliver(4, "instance-3");
  expect(await credited()).toEqual(["instance-3"]);
  const named = await send(agent, 5, 5, { headers: { "accel-instance": "no id" } });
  expect(named).toMatchObject({ status: 400, body: { code: "invalid" } });
});

test("while too much waits for the log thread, agents are told to come again", async () => {
  const { side, siteId, agent } = await started();
  await using _ = side;
  await side.thread.stats(60_000); // What it asks of itself at its start is done.
  // Fills the queue in one turn of the loop, before the thread can answer.
  const body = Buffer.from(batchText(1, 1));
  const lane = { epoch: "00000000000000e2", no: 1 };
  const nowMs = side.clock.ms;
  const many = Array.from({ length: 300 }, async (_, at) =>
    side.thread.append({
      siteId,
      lane,
      firstSeq: at + 1,
      lastSeq: at + 1,
      encoding: "identity",
      body,
      nowMs,
    }),
  );
  expect(side.thread.isBusy).toBe(true);
  const outcomes = (await Promise.all(many)).map(({ kind }) => kind);
  expect(outcomes.filter((kind) => kind === "committed")).toHaveLength(256);
  expect(outcomes.filter((kind) => kind === "busy")).toHaveLength(44);
  expect(side.thread.isBusy).toBe(false);
  expect((await send(agent, 1, 1)).status).toBe(200);
});

test("the reader gives the eight fields of each record, and a cursor only of its own making", async () => {
  const { side, siteId, agent } = await started();
  await using _ = side;
  await send(agent, 1, 30);
  const query = { deploymentSiteId: siteId, domain: "www.example.test", limit: 7 };
  const seen: string[] = [];
  let after: string | undefined;
  do {
    const page = await readLogs(side.thread, { ...query, after });
    seen.push(...shownPaths(page.logs));
    after = page.next;
  } while (after !== undefined);
  expect(seen).toEqual(Array.from({ length: 30 }, (_, i) => `/${30 - i}`));
  const [record] = JSON.parse((await readLogs(side.thread, query)).logs);
  const { connection, response_status, request_method, uri_path, backend_time, when, authority } =
    requestRecord({ uri_path: "/30" });
  const shown = { connection, response_status, request_method, uri_path, backend_time, when };
  expect(record).toEqual({ ...shown, authority, deployment_id: siteId });
  await expect(readLogs(side.thread, { ...query, after: "1' OR 1=1" })).rejects.toMatchObject({
    code: "NOT_FOUND",
  });
  expect(await readLogs(side.thread, { ...query, deploymentSiteId: 99 })).toEqual({ logs: "[]" });
  expect(await readLogs(side.thread, { ...query, until: 1 })).toEqual({ logs: "[]" });
});
