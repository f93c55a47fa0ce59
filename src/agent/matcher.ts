// The matcher process: matches customers' patterns against the cache index, read-only, and is killed by the
// index thread when over budget.

import { Matcher, type MatchJob } from "./cache/clearing/match-job.ts";

const matcher = new Matcher();

process.on("message", (job) => {
  // The index thread sends nothing else. It may be gone by now.
  process.send?.(matcher.run(job as MatchJob), undefined, undefined, () => undefined);
});

// Nobody is left to answer to.
process.once("disconnect", () => process.exit(0));
