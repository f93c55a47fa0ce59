// When an index may be believed after the host was down: its bodies had been written out and it was closed, or each of them is looked at first.

import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempDir } from "../../../support/temp-dir.ts";
import { keyOf, metaOf, tamper } from "../rig.ts";
import { openIndexIn, type StillIndex } from "../still-index.ts";

/** The id of an entry that is stored now. */
function storeIn({ index }: StillIndex): number {
  const candidate = {
    key: keyOf({ path: "/x" }),
    meta: metaOf({ sourceNo: index.clears.newest }),
    body: { kind: "inline", bytes: Buffer.from("hello") },
    size: 5,
    invalidationMark: null,
  } as const;
  const [outcome] = index.write([{ kind: "commit", candidate }]);
  return outcome?.kind === "stored" ? outcome.id : expect.unreachable();
}

/** What the opening after a boot of the host says of it. */
async function afterBoot(
  stateDir: string,
  { opening }: StillIndex,
): Promise<{ suspectTo: number; isUnchecked: boolean }> {
  tamper(stateDir, "UPDATE state SET boot_id = 'another'");
  await using opened = await openIndexIn(join(stateDir, "cache"), { opening });
  const { suspectTo, isUnchecked } = opened.index;
  return { suspectTo, isUnchecked };
}

test.each([
  {
    what: "was closed when its bodies had been written out is believed",
    sync: () => Promise.resolve(true),
    isBelieved: true,
  },
  {
    what: "was closed without that is not",
    sync: () => Promise.resolve(false),
    isBelieved: false,
  },
  {
    what: "was closed when writing them out failed is not",
    sync: () => Promise.reject(new Error("no sync")),
    isBelieved: false,
  },
])("after a boot an index that $what", async ({ sync, isBelieved }) => {
  using dir = tempDir();
  const directory = join(dir.path, "cache");
  const opened = await openIndexIn(directory);
  const id = storeIn(opened);
  expect(opened.index.suspectTo).toBe(0);
  await opened.keeper.close(sync).catch(() => undefined);
  expect(opened.header.incarnation).toBe(0);
  expect(opened.keeper.index).toBe(undefined);
  expect(await afterBoot(dir.path, opened)).toEqual({
    suspectTo: isBelieved ? 0 : id,
    isUnchecked: !isBelieved,
  });
});

test("after a boot an index that was in use is not believed, though it had been closed before that", async () => {
  using dir = tempDir();
  const directory = join(dir.path, "cache");
  const before = await openIndexIn(directory);
  const id = storeIn(before);
  await before[Symbol.asyncDispose]();
  await using opened = await openIndexIn(directory, { opening: before.opening });
  expect(opened.index.suspectTo).toBe(0);
  // As the power left it.
  const then = join(dir.path, "then");
  mkdirSync(then);
  cpSync(directory, join(then, "cache"), { recursive: true });
  expect(await afterBoot(then, opened)).toEqual({ suspectTo: id, isUnchecked: true });
});

test("a closed one is opened no more", async () => {
  using dir = tempDir();
  const opened = await openIndexIn(dir.path);
  await opened[Symbol.asyncDispose]();
  await opened.keeper.open();
  expect(opened.keeper.index).toBe(undefined);
  await opened.keeper.drop("the test says so");
  expect([opened.keeper.index, opened.header.incarnation]).toEqual([undefined, 0]);
});
