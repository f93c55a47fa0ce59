// An open index without thread or timer: nothing happens to it but what a test does, step by step, at a time that stands still unless the test moves it.

import { expect } from "vitest";
import { IndexKeeper } from "../../../src/agent/cache/index-keeper.ts";
import type { OpenIndex } from "../../../src/agent/cache/open-index.ts";
import { SharedHeader } from "../../../src/agent/cache/shared-header.ts";

export type StillIndex = {
  readonly index: OpenIndex;
  readonly header: SharedHeader;
} & AsyncDisposable;

export async function openIndexIn(
  directory: string,
  { diskMax = 2 ** 30, nowS = () => 1_900_000_000 } = {},
): Promise<StillIndex> {
  let elapsedMs = 0;
  const header = new SharedHeader(SharedHeader.allocate());
  const keeper = new IndexKeeper({
    directory,
    header,
    diskMax,
    clock: { nowS, elapsedMs: () => elapsedMs, rest: (ms) => void (elapsedMs += ms) },
    facts: { epoch: null, clearSeq: 0, clearNo: 0, opening: null },
    events: {
      opened: () => undefined,
      dropped: (reason) => expect.unreachable(reason),
      failed: (reason) => expect.unreachable(reason),
    },
  });
  await keeper.open();
  const { index } = keeper;
  if (index === undefined) throw new Error("the index did not open");
  const close = (): Promise<void> => keeper.close(() => Promise.resolve(true));
  return { index, header, [Symbol.asyncDispose]: close };
}
