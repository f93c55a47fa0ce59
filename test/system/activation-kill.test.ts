// kill -9 at random moments of activations under visitors. `npm run bench -- activation-kill` kills 200 times.

import { expect, test } from "vitest";
import { killedSite, runKills } from "../support/activation-kill.ts";
import { bootOffline } from "../support/boot-offline.ts";
import { builtTree } from "../support/built-tree.ts";
import { ReleaseRig } from "../support/release-rig.ts";

const kills = 6;

test(`${kills} kills in activations: visitors get one version or nobody, and it goes on by itself`, async () => {
  using tree = builtTree();
  const { main } = tree;
  await using rig = await ReleaseRig.open({ main });
  await rig.edge.startAgent(main);
  const { counts, ...run } = await runKills(rig, { kills, visitors: 4 });
  expect({ ...run, failed: counts.failed, backward: counts.backward }).toMatchObject({
    stuck: [],
    failed: [],
    backward: [],
  });
  expect(run.before + run.after).toBeGreaterThanOrEqual(kills);
  expect(run.before).toBeGreaterThan(0);
  expect(counts.pairs).toBeGreaterThan(kills);
  expect(counts.unanswered).toBeGreaterThan(0);
  const { wrong, span } = await bootOffline(rig, killedSite, main);
  expect({ wrong, isOneVersion: span !== undefined }).toEqual({ wrong: [], isOneVersion: true });
}, 900_000);
