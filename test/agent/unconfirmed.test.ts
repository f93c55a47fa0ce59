// Starting without central's word on missed clears: told where something may be cached, and only while the word is missing.

import { expect, test } from "vitest";
import type { CacheStats } from "../../src/agent/cache/messages.ts";
import { startUnconfirmed } from "../../src/agent/unconfirmed.ts";
import { Health } from "../../src/base/health.ts";
import { silentLog } from "../../src/base/log.ts";

const stats: CacheStats = {
  isOpen: true,
  entries: 0,
  bytes: 0,
  diskMax: 1,
  withheldBytes: 0,
  walBytes: 0,
  clearNo: 0,
  durableNo: 0,
  unfinishedClears: 0,
};

async function codes(
  hasState: boolean,
  answer: Partial<CacheStats> | "broken",
  confirm: (confirmed: AbortController) => void = () => undefined,
): Promise<readonly string[]> {
  const health = new Health(() => new Date(0));
  const confirmed = new AbortController();
  const index = {
    stats: async () => {
      confirm(confirmed);
      if (answer === "broken") throw new Error("the index thread is gone");
      return { ...stats, ...answer };
    },
    setUnconfirmedServes: () => undefined,
  };
  const parts = { index, hasState: () => hasState, health, log: silentLog() };
  await startUnconfirmed({ ...parts, unconfirmed: "revalidate" }, confirmed.signal);
  return health.list().map(({ code }) => code);
}

test.each<[string, boolean, Partial<CacheStats> | "broken", readonly string[]]>([
  ["a new host with an empty index", false, {}, []],
  ["a new host whose index has something", false, { entries: 1 }, ["clears_unconfirmed"]],
  ["a new host whose index is not open", false, { isOpen: false }, ["clears_unconfirmed"]],
  ["a new host whose index does not answer", false, "broken", ["clears_unconfirmed"]],
  ["a host that central gave a state before", true, {}, ["clears_unconfirmed"]],
])("%s", async (_, hasState, answer, told) => {
  expect(await codes(hasState, answer)).toEqual(told);
});

test("the word that comes while the index is asked leaves no warning behind", async () => {
  expect(await codes(false, { entries: 1 }, (confirmed) => confirmed.abort())).toEqual([]);
});
