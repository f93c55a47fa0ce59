// The number up to which index.db keeps what it was told whatever happens to the host: it follows every clear and every invalidation, for agent.db notes it.

import { expect, test } from "vitest";
import { tempDir } from "../../../support/temp-dir.ts";
import { clear, keyOf, memoryOf, openedRig, store } from "../rig.ts";

test("each clear and each invalidation is durable when it is told to be done, and the number says so", async () => {
  using dir = tempDir();
  const memory = memoryOf(dir.path);
  let last = 0;
  {
    await using rig = await openedRig(dir.path, { memory });
    const key = keyOf({ path: "/x" });
    for (let round = 0; round < 3; round++) {
      await store(rig.cache, key);
      const { clearNo } = await clear(rig, ["path:x"]).applied;
      expect((await rig.client.stats()).durableNo).toBe(clearNo);
      await store(rig.cache, key);
      await rig.cache.invalidate(key);
      const { durableNo } = await rig.client.stats();
      expect(durableNo).toBe(clearNo + 1);
      expect(durableNo).toBe(rig.header.clearNo);
      last = durableNo;
    }
  }
  // An index that knows less than this is an old copy.
  expect(memory.read().clearNo).toBe(last);
});
