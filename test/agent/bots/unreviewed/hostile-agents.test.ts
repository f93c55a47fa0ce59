// Agents made to cost time or memory: 8 KiB each, all different.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { knownCrawlers } from "../../../../src/agent/bots/unreviewed/crawlers.ts";
import { openClaimedBots } from "../../../../src/agent/bots/unreviewed/user-agents.ts";

const bytes = 8_192;
const fill = (part: string): string => part.repeat(Math.ceil(bytes / part.length)).slice(0, bytes);

const hostile: readonly string[] = [
  "a",
  "(",
  "1.",
  "é",
  "bot ",
  "http",
  "x@a.b ",
  "@a-",
  "a b.",
  "aa;",
  "a/1.0 ",
  "/1 bot",
  "Mozilla/5.0 (X11; Linux) ",
  "Google-",
  "get rawler ingdom laudeot cunetix ",
  // Patterns of two texts, the second of which stands before the first.
  "RSS Reader spider.com outcomes.net CurrentSpiderContextualBot",
].map((part) => fill(part));

/** A hostile agent may cost so many times what a browser's own costs. */
const timesMax = 30;
const browserAgent =
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36";
/** Each is shorter than the scheduler's slice, so that some attempts are without a neighbour's turn. */
const rounds = { browser: 40, hostile: 4 };
const attempts = 500;

function collector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void; // What the flag brings.
}

/** How many times a browser's agent it costs: both in turn, so that a busy host slows both, and the best of several. Ends at the first within the limit. */
function timesOfBrowser(lookup: ReturnType<typeof openClaimedBots>, agent: string): number {
  let [times, no] = [Infinity, 0];
  const meanUs = (count: number, work: () => unknown): number => {
    const began = performance.now();
    for (let round = 0; round < count; round++) work();
    return ((performance.now() - began) * 1_000) / count;
  };
  for (let attempt = 0; times > timesMax && attempt < attempts; attempt++) {
    // Each is another agent: what was looked up before may be remembered.
    const browserUs = meanUs(rounds.browser, () => lookup(browserAgent + no++));
    times = Math.min(times, meanUs(rounds.hostile, () => lookup(agent)) / browserUs);
  }
  return times;
}

test(`a hostile agent costs at most ${timesMax} times a browser's`, () => {
  const lookup = openClaimedBots();
  const slow = hostile
    .map((agent) => ({ times: timesOfBrowser(lookup, agent), agent: agent.slice(0, 24) }))
    .filter(({ times }) => times > timesMax);
  expect(slow).toEqual([]);
});

test(`the text of any crawler, over and over behind what makes it a bot, costs at most ${timesMax} times a browser's agent`, () => {
  const lookup = openClaimedBots();
  const slow = knownCrawlers().filter(
    ({ name }) => timesOfBrowser(lookup, `bot ${fill(`${name} `)}`) > timesMax,
  );
  expect(slow).toEqual([]);
});

test("a flood of distinct agents takes bounded memory", () => {
  const lookup = openClaimedBots();
  const collect = collector();
  const kept: unknown[] = [];
  // A long agent of its own text, as a parser of HTTP makes it; its name is kept as a counter keeps it.
  const flood = (from: number, count: number): void => {
    for (let no = from; no < from + count; no++) {
      const agent = Buffer.from(`own-long-name-of-bot-${no}/1 ${fill("x")}`).toString("latin1");
      const name = lookup(agent)?.name;
      if (no % 10 === 0) kept.push(name);
      lookup(Buffer.from(agent.slice(0, 300)).toString("latin1"));
    }
  };
  flood(0, 10); // What is compiled and made once.
  collect();
  const before = process.memoryUsage().heapUsed;
  flood(10, 34_990);
  collect();
  const grown = process.memoryUsage().heapUsed - before;
  // As parts of their agents 3,500 names would hold 28 MB; 35,000 remembered agents of 300 characters were 14 MB.
  expect(grown).toBeLessThan(8 * 2 ** 20);
  expect(kept).toHaveLength(3_500);
});
