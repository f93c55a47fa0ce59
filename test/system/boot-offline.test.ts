// Starts without central, on what activations, hostile documents, damaged files and certificates left. `npm run bench -- boot-offline` does it with 10,000
// files and 1,000 certificates, and measures the time.

import { expect, test } from "vitest";
import { bootAfterScenes, type SceneBoot } from "../support/boot-scenes.ts";
import { builtTree } from "../support/built-tree.ts";

test("a host that starts without central serves what was in force, with its certificates", async () => {
  using tree = builtTree();
  const boots: SceneBoot[] = [];
  const scale = { files: 100, certificates: 5, main: tree.main };
  await bootAfterScenes(scale, (boot) => boots.push(boot));
  expect(boots).toHaveLength(4);
  for (const { scene, wrong, span, expected } of boots)
    expect({ scene, wrong, span }).toEqual({
      scene,
      wrong: [],
      span: { from: expected, to: expected },
    });
}, 600_000);
