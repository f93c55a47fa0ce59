// The warning of a store that lost what had been acknowledged: for a week, and of no restore from a backup.

import { join } from "node:path";
import { expect, test } from "vitest";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { startLossWarning } from "../../../src/central/jobs/loss-warning.ts";
import { noteFailover, noteRestore } from "../../../src/central/store/engine/restores.ts";
import type { StoreLoss } from "../../../src/central/store/engine/store-evidence.ts";
import { openTestStore } from "../../support/any-store.ts";
import { TestClock } from "../../support/agent-side.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const dayMs = 86_400_000;

test("it comes with the loss, says what is known of it, and goes a week later", async () => {
  using dir = tempDir();
  const clock = new TestClock();
  const { now } = clock;
  await using store = await openTestStore(join(dir.path, "central.db"), now);
  const health = new Health(now);
  await using _ = startLossWarning({ store, health, now, log: silentLog(), intervalMs: 5 });
  const list = () => health.list().map(({ code, severity, text }) => ({ code, severity, text }));

  const at = now().toISOString();
  const restore = { when_backed_up: at, when_restored: at, clear_now: false };
  await noteRestore(store, restore);
  health.raise("store_lost_commits", "error", "from before", "");
  await until("a backup is no loss", () => list().length === 0);

  const loss: StoreLoss = {
    isCertain: true,
    sinceMs: clock.ms - 3_000,
    untilMs: clock.ms - 1_000,
    commits: 2,
    journals: [{ siteId: 7, fromSeq: 3, toSeq: 4 }],
    timelines: { before: 1, now: 2 },
  };
  await store.transaction().execute(async (tx) => noteFailover(tx, loss, at));
  await until("the warning", () => list().length > 0);
  expect(list()).toEqual([
    {
      code: "store_lost_commits",
      severity: "error",
      text: "the store lost changes that were acknowledged between 2030-01-15T11:59:57.000Z and 2030-01-15T11:59:59.000Z: at least 2 of them. Among them are, at least, entries of the journals of deployment sites 7 (3 to 4). The server's timeline was 1 and is 2. It was found at 2030-01-15T12:00:00.000Z",
    },
  ]);
  clock.ms += 7 * dayMs;
  await until("its end", () => list().length === 0);
});
