// The proof of a clear as it is told to whoever asks again: beside the first, later, and after a restart it is the same.

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { tempDir } from "../../../support/temp-dir.ts";
import { clear, entryScript, keyOf, openedRig, store } from "../rig.ts";

const matchJob = pathToFileURL(
  join(import.meta.dirname, "../../../../src/agent/cache/clearing/match-job.ts"),
).href;

/** Blind where a clear is matched; the proof finds what was left. */
const blind = `import { Matcher } from ${JSON.stringify(matchJob)};
  const matcher = new Matcher();
  process.on("message", (job) => process.send(job.kind === "match" ? { kind: "matched", ids: { first: 0, words: new Uint32Array() } } : matcher.run(job)));
  process.once("disconnect", () => process.exit(0));`;

const proved = { verified: true, left: 0, removed: 1 };
const left = [
  "clear_left_entries",
  "error",
  expect.stringMatching(
    /^clear \d+ had left behind 1 entries that it matches; they are dropped now$/,
  ),
];
const disproved = { verified: false, left: 1, removed: 0 };

test.each([
  ["that holds", undefined, proved, []],
  ["that does not", blind, disproved, [left]],
] as const)(
  "a proof %s is the same for all who ask at once, and after a restart",
  async (_what, script, proof, warnings) => {
    using dir = tempDir();
    using scripts = tempDir();
    const changes = script === undefined ? {} : { matcherEntry: entryScript(scripts.path, script) };
    const again = { clearId: "one", seq: 3 };
    {
      await using rig = await openedRig(dir.path, changes);
      await store(rig.cache, keyOf({ path: "/x" }));
      const { applied, gone } = clear(rig, ["path:x"], again);
      // Before the first is told they wait behind it.
      const others = [clear(rig, ["path:x"], again).gone, clear(rig, ["path:x"], again).gone];
      await applied;
      for (const told of await Promise.all([gone, ...others])) expect(told).toMatchObject(proof);
      expect(rig.health.list().map(({ code, severity, text }) => [code, severity, text])).toEqual(
        warnings,
      );
      expect(await clear(rig, ["path:x"], again).gone).toMatchObject(proof);
    }
    // What matches now was stored after the clear: asked anew, the predicate would say something else.
    await using rig = await openedRig(dir.path);
    await store(rig.cache, keyOf({ path: "/x" }));
    expect(await clear(rig, ["path:x"], again).gone).toMatchObject(proof);
  },
);
