// An open index without thread or timer: nothing happens to it but what a test does, step by step, at a time that stands still unless the test moves it.

import { expect } from "vitest";
import { IndexKeeper } from "../../../src/agent/cache/index/index-keeper.ts";
import type { KeyPresence } from "../../../src/agent/cache/index/key-presence.ts";
import type { OpenIndex } from "../../../src/agent/cache/index/open-index.ts";
import { SharedHeader } from "../../../src/agent/cache/index/shared-header.ts";

export type StillIndex = {
  readonly keeper: IndexKeeper;
  readonly index: OpenIndex;
  readonly header: SharedHeader;
  /** What agent.db would remember of it. */
  readonly opening: string;
  /** Everything cached goes; the index that takes its place. */
  readonly makeAnew: () => Promise<OpenIndex>;
} & AsyncDisposable;

export async function openIndexIn(
  directory: string,
  {
    diskMax = 2 ** 30,
    nowS = () => 1_900_000_000,
    opening = null,
    header = new SharedHeader(SharedHeader.allocate()),
    keys,
    lacking,
  }: {
    diskMax?: number;
    nowS?: () => number;
    opening?: string | null;
    header?: SharedHeader;
    keys?: KeyPresence;
    /** How many bytes the disk lacks; nothing if unsaid. */
    lacking?: () => number;
  } = {},
): Promise<StillIndex> {
  let elapsedMs = 0;
  let opened = "";
  let isDropped = false;
  const keeper = new IndexKeeper({
    directory,
    header,
    ...(keys && { keys }),
    ...(lacking && { lacking }),
    diskMax,
    clock: { nowS, elapsedMs: () => elapsedMs, rest: (ms) => void (elapsedMs += ms) },
    facts: { epoch: null, clearSeq: 0, clearNo: 0, opening },
    events: {
      opened: (_, name) => void (opened = name),
      dropped: (reason) => void (isDropped || expect.unreachable(reason)),
      failed: (reason) => expect.unreachable(reason),
    },
  });
  const current = (): OpenIndex => {
    if (keeper.index === undefined) throw new Error("the index did not open");
    return keeper.index;
  };
  await keeper.open();
  return {
    keeper,
    index: current(),
    header,
    opening: opened,
    makeAnew: async () => {
      isDropped = true;
      await keeper.drop("the test says so");
      return current();
    },
    [Symbol.asyncDispose]: () => keeper.close(() => Promise.resolve(true)),
  };
}
