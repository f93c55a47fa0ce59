// What the guard costs a commit while clears are pending, in this process.

import { Guard } from "../../src/agent/cache/index/guard.ts";
import { exactPatternOf, extension, under } from "../../src/core/patterns/pattern-recipes.ts";
import { percentile, type Figures } from "./figures.ts";
import type { SitePaths } from "./site-paths.ts";

const commits = 20_000;
/** None of them matches, so that all are evaluated. */
const pending = [
  exactPatternOf({ kind: "generated", path: "/elsewhere", query: "" }),
  under("/nowhere/"),
  extension("woff2"),
];

export function measureGuard(paths: SitePaths, figures: Figures): void {
  using guard = new Guard();
  figures.head(`guard, ${commits.toLocaleString("en")} commits`);
  for (let count = 1; count <= pending.length; count++) {
    const lists = pending.slice(0, count).map((pattern) => [[pattern]]);
    const tookUs: number[] = [];
    for (let no = 0; no < commits; no++) {
      const entry = paths.entry(no);
      const began = performance.now();
      guard.firstMatch(entry, lists);
      tookUs.push((performance.now() - began) * 1_000);
    }
    const p99 = `p99 ${percentile(tookUs, 0.99).toFixed(0)} µs`;
    figures.add(
      `a commit with ${count} pending, p50`,
      percentile(tookUs, 0.5),
      "µs",
      { most: 50 },
      p99,
    );
  }
}
