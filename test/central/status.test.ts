// What central says of itself to operators while its store is away.

import { expect, test } from "vitest";
import { Health } from "../../src/base/health.ts";
import { centralStatus } from "../../src/central/status.ts";
import { seedSite, startAgentSide, type AgentSide } from "../support/agent-side.ts";

type Given = Parameters<typeof centralStatus>[0];

const given = ({ store, thread }: Pick<AgentSide, "store" | "thread">, health: Health): Given =>
  ({
    settings: { listen: { host: "127.0.0.1" }, base_url: "", state_dir: "/" },
    version: "1.2.3",
    store,
    thread,
    health,
    now: () => new Date(),
    stop: new AbortController().signal,
  }) as unknown as Given; // Of the settings it reads these three.

test("while the store is away status tells what central knows without it, its warnings above all", async () => {
  await using side = await startAgentSide();
  await seedSite(side.store);
  const health = new Health(() => new Date());
  const status = async (): Promise<unknown> => centralStatus(given(side, health), side.hub, 80);
  expect(await status()).toMatchObject({
    store_answers: true,
    epoch: side.agentStore.epoch,
    deployment_sites: [{ live: false }],
    warnings: [],
  });
  await side.store.destroy();
  health.raise("store_unreachable", "error", "the store does not answer", "Look.");
  expect(await status()).toMatchObject({
    version: "1.2.3",
    listen: "127.0.0.1:80",
    store_answers: false,
    epoch: null,
    newest_package: null,
    deployment_sites: null,
    warnings: [{ code: "store_unreachable" }],
  });
});

test("a store that is known to be silent is not waited for as long as one of which nothing is known", async () => {
  await using side = await startAgentSide();
  const silent = new Health(() => new Date());
  silent.raise("store_unreachable", "error", "the store does not answer", "Look.");
  const { promise: end, resolve } = Promise.withResolvers<void>();
  const held = side.store.transaction().execute(async () => end);
  const ended: string[] = [];
  const asked = async (name: string, health: Health): Promise<void> => {
    expect(await centralStatus(given(side, health), side.hub, 80)).toMatchObject({
      store_answers: false,
    });
    ended.push(name);
  };
  await Promise.all([asked("unknown", new Health(() => new Date())), asked("silent", silent)]);
  resolve();
  await held;
  expect(ended).toEqual(["silent", "unknown"]);
});
