// The model check of activations on all or none: random interleavings of what customers, hosts and the network do, over central's rules in memory, and fewer of
// them over the real store. Planted faults are found, each.

import { expect, test } from "vitest";
import { noCounts, versionsMax, walk } from "../../support/fleet-model.ts";
import { StoreCentral } from "../../support/fleet-model-store.ts";
import { plantedFaults } from "../../support/fleet-model-words.ts";
import { tempDir } from "../../support/temp-dir.ts";

const steps = 60;

test("five thousand interleavings break no rule", async () => {
  const counts = noCounts();
  for (let seed = 1; seed <= 5_000; seed++)
    expect(await walk({ seed, steps }, counts)).toBeUndefined();
  // Everything that may become of an activation is among them.
  for (const count of Object.values(counts)) expect(count).toBeGreaterThan(100);
});

test.each(plantedFaults)("a central or an agent that %s is found", async (fault) => {
  let found: string | undefined;
  for (let seed = 1; seed <= 2_000 && found === undefined; seed++)
    found = await walk({ seed, steps, fault }, noCounts());
  expect(found).toBeDefined();
});

test("the same walks over the real store", async () => {
  using directory = tempDir();
  const counts = noCounts();
  for (let seed = 1; seed <= 6; seed++) {
    await using stack = new AsyncDisposableStack();
    const broken = await walk(
      {
        seed,
        steps,
        open: async (world) =>
          stack.use(await StoreCentral.open(world, directory.path, versionsMax)),
      },
      counts,
    );
    expect(broken).toBeUndefined();
  }
  expect(counts.activated).toBeGreaterThan(0);
});
