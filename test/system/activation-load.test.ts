// Activations in a row between two versions of a site under visitors. `npm run bench -- activation-load` does 300 of them with 10,000 files.

import { expect, test } from "vitest";
import { runLoad } from "../support/activation-load.ts";
import { bootOffline } from "../support/boot-offline.ts";
import { builtTree } from "../support/built-tree.ts";
import { ReleaseRig } from "../support/release-rig.ts";
import { VersionedSite } from "../support/versioned-site.ts";

const activations = 15;
const files = 400;

test(`${activations} activations under load: none fails, none mixes, none goes back, and it boots offline`, async () => {
  using tree = builtTree();
  const { main } = tree;
  await using rig = await ReleaseRig.open({ main });
  await rig.edge.startAgent(main);
  const load = { files, activations, visitors: 4, sampleEach: activations };
  const { counts, tookMs, samples } = await runLoad(rig, load);
  expect({ failed: counts.failed, backward: counts.backward }).toEqual({
    failed: [],
    backward: [],
  });
  expect(counts.unanswered).toBe(0);
  expect(tookMs).toHaveLength(activations);
  expect(counts.pairs).toBeGreaterThan(100);
  for (const kind of ["partial", "unchanged"] as const)
    expect(counts[kind], kind).toBeGreaterThan(5);
  expect(samples).toHaveLength(1);

  // The first two are not counted as activations under load.
  const last = 2 - (activations % 2);
  const offline = await bootOffline(rig, new VersionedSite(files), main);
  expect(offline).toMatchObject({ wrong: [], span: { from: last, to: last } });
}, 600_000);
