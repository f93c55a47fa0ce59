// Request logs where something is the matter: a disk that fails, too much at once, batches beside one that is refused, deliveries that cannot be noted; and canaries.

import { mkdirSync, rmdirSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createCanaryAges } from "../../../src/central/agents/log-canaries.ts";
import { createAgentMetrics } from "../../../src/central/agents/metrics.ts";
import { LogRoom } from "../../../src/central/agents/log-room.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { siteNames } from "../../../src/central/store/journal/sites.ts";
import { name16, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { batchText, connectAgent, type FakeAgent } from "../../support/fake-agent.ts";
import { judgeDays } from "../../support/log-day-judge.ts";
import { shownPaths } from "../../support/shown-paths.ts";
import { until } from "../../support/until.ts";

async function started() {
  const side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  const agent = await connectAgent(side.url, name16, secret16);
  return { side, siteId, agent };
}

async function send(
  agent: FakeAgent,
  first: number,
  last: number,
  body = batchText(first, last),
  laneNo = 1,
) {
  return agent.call("/request-logs", {
    method: "POST",
    headers: {
      "accel-lane": `00000000000000e1/${laneNo}`,
      "accel-first-seq": String(first),
      "accel-last-seq": String(last),
    },
    body,
  });
}

const canary = (at: number): string => `${JSON.stringify({ canary: { at } })}\n`;

test("a store that fails is answered 503 with Retry-After, commits nothing, and is well again by itself", async () => {
  const { side, agent } = await started();
  await using _ = side;
  const inTheWay = join(side.stateDir, "logs", "2030-01-15.db");
  mkdirSync(inTheWay);
  const refused = await send(agent, 1, 3);
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toBe("10");
  expect(await refused.json()).toMatchObject({ code: "unavailable" });
  expect(side.thread.failure).toBeDefined();
  expect(await side.registry.metrics()).toContain(
    'accel_central_log_batches_total{outcome="failed"} 1',
  );
  rmdirSync(inTheWay);
  expect((await send(agent, 1, 3)).status).toBe(200);
  expect(side.thread.failure).toBeUndefined();
  expect([...judgeDays(join(side.stateDir, "logs")).values()]).toEqual([3]);
});

test("a delivery that cannot be noted is answered all the same, and noted with the next", async () => {
  const { side, agent } = await started();
  await using _ = side;
  const { confirmLogs } = side.agentStore;
  let isBroken = true;
  let noted = 0;
  side.agentStore.confirmLogs = async (id, instanceId) => {
    if (isBroken) throw new Error("disk full");
    noted++;
    return confirmLogs.call(side.agentStore, id, instanceId);
  };
  expect((await send(agent, 1, 1)).status).toBe(200);
  isBroken = false;
  expect((await send(agent, 2, 2)).status).toBe(200);
  expect(noted).toBe(1);
});

test("what one site sends at once is limited, and others are not held up by it", async () => {
  const { side, agent } = await started();
  await using _ = side;
  const held = Array.from({ length: 8 }, (_, at) =>
    request(new URL(`${side.url}/request-logs`), {
      method: "POST",
      headers: {
        authorization: `Bearer ${agent.token.access_token}`,
        "accel-lane": `00000000000000e1/${at + 10}`,
        "accel-first-seq": "1",
        "accel-last-seq": "1",
        "content-length": "1000",
      },
    }),
  );
  for (const one of held) {
    one.on("error", () => {});
    one.write("{");
  }
  await until("the ninth is too many", async () => {
    const answer = await send(agent, 1, 1, batchText(1, 1), 99);
    return answer.status === 429 && answer.headers.get("retry-after") === "2";
  });
  await seedSite(side.store, "00112233445566bb", "1".repeat(32));
  const other = await connectAgent(side.url, "00112233445566bb", "1".repeat(32));
  expect((await send(other, 1, 1)).status).toBe(200);
  for (const one of held) one.destroy();
  await until(
    "there is room again",
    async () => (await send(agent, 1, 1, batchText(1, 1), 7)).status === 200,
  );
});

test("room is counted in bytes over all sites and given back", () => {
  const room = new LogRoom();
  const mib = 2 ** 20;
  const taken = Array.from({ length: 16 }, (_, at) => room.take(Math.floor(at / 4), 4 * mib));
  expect(taken.map(({ kind }) => kind)).toEqual(Array(16).fill("taken"));
  expect(room.take(9, 1)).toEqual({ kind: "full" });
  for (const one of taken) if (one.kind === "taken") one[Symbol.dispose]();
  expect(room.bytes).toBe(0);
  for (let at = 0; at < 8; at++) expect(room.take(1, 1).kind).toBe("taken");
  expect(room.take(1, 1)).toEqual({ kind: "crowded" });
  expect(room.take(2, 1).kind).toBe("taken");
});

test("batches that wait beside each other are committed together, each judged by itself", async () => {
  const { side, siteId } = await started();
  await using _ = side;
  const outcomes = await Promise.all(
    Array.from({ length: 30 }, async (_, at) =>
      side.thread.append({
        siteId,
        lane: { epoch: "00000000000000e2", no: at },
        firstSeq: at % 5 === 1 ? 2 : 1,
        lastSeq: 2,
        encoding: "identity",
        body: Buffer.from(at % 5 === 0 ? `${batchText(1, 1)}{"torn` : batchText(1, 2)),
        nowMs: side.clock.ms,
      }),
    ),
  );
  const kinds = ["invalid", "conflict", "committed", "committed", "committed"];
  expect(outcomes.map(({ kind }) => kind)).toEqual(outcomes.map((_, at) => kinds[at % 5]));
  expect(judgeDays(join(side.stateDir, "logs")).size).toBe(18);
});

test("a canary takes a number, is shown to nobody, and its age is told from day to day", async () => {
  const { side, siteId, agent } = await started();
  await using _ = side;
  const seconds = side.clock.ms / 1_000;
  expect(
    (await send(agent, 1, 3, batchText(1, 1) + canary(seconds - 5) + batchText(3, 3))).status,
  ).toBe(200);
  expect((await send(agent, 1, 1, canary(seconds - 60), 2)).status).toBe(200); // Older, of a backlog.
  expect((await send(agent, 4, 4, JSON.stringify({ canary: { at: -1 } }))).status).toBe(400);
  const bounds = { limit: 9, after: undefined, since: undefined, until: undefined };
  const { logs } = await side.thread.read({ siteId, domain: "www.example.test", ...bounds });
  expect(shownPaths(logs)).toHaveLength(2);
  expect(await side.registry.metrics()).toContain("accel_central_log_records_total 2");

  const registry = new Registry();
  const metrics = createAgentMetrics(registry);
  const names = async () => siteNames(side.store);
  const onError = (): void => expect.unreachable();
  const { thread, clock } = side;
  const tell = createCanaryAges({ thread, metrics, names, now: clock.now, onError });
  const age = async (): Promise<string | undefined> => {
    await tell();
    return /^accel_central_log_canary_age_seconds\{deployment="00112233445566aa"\} (\S+)$/m.exec(
      await registry.metrics(),
    )?.[1];
  };
  side.clock.ms += 1_000;
  expect(await age()).toBe("6");
  // A clock that is ahead makes nothing look younger than when it came, nor later ones older.
  expect((await send(agent, 4, 4, canary(seconds + 7_200))).status).toBe(200);
  side.clock.ms += 86_400_000;
  expect(await age()).toBe("86400");
  const later = await connectAgent(side.url, name16, secret16);
  expect((await send(later, 5, 5)).status).toBe(200); // Of the next day's file.
  expect(await age()).toBe("86400");
  expect((await send(later, 6, 6, canary(side.clock.ms / 1_000 - 2))).status).toBe(200);
  expect(await age()).toBe("2");
  await side.store
    .updateTable("deployment_sites")
    .set({ when_deleted: "2030-01-16T00:00:00.000Z" })
    .execute();
  expect(await age()).toBeUndefined();
});
