// What central says of itself to operators while its store is away.

import { expect, test } from "vitest";
import { Health } from "../../src/base/health.ts";
import { centralStatus } from "../../src/central/status.ts";
import { seedSite, startAgentSide } from "../support/agent-side.ts";

test("while the store is away status tells what central knows without it, its warnings above all", async () => {
  await using side = await startAgentSide();
  await seedSite(side.store);
  const health = new Health(() => new Date());
  const status = async (): Promise<unknown> =>
    centralStatus(
      {
        settings: { listen: { host: "127.0.0.1" }, base_url: "", state_dir: "/" },
        version: "1.2.3",
        store: side.store,
        thread: side.thread,
        health,
        now: () => new Date(),
        stop: new AbortController().signal,
      } as unknown as Parameters<typeof centralStatus>[0], // Of the settings it reads these three.
      side.hub,
      80,
    );
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
