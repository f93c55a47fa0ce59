// Invalidations under trouble: while more is being stored than may be, while the index thread does not answer, while there is no index, and when the
// disk refuses the commit. None is refused for a full line, and none is forgotten.

import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import type { EntryKey } from "../../../../src/agent/cache/entry.ts";
import { IndexLink } from "../../../../src/agent/cache/worker/index-link.ts";
import { IndexThread } from "../../../../src/agent/cache/index/index-thread.ts";
import type { View, WorkerToIndexer } from "../../../../src/agent/cache/messages.ts";
import { EntryBits } from "../../../../src/agent/cache/index/entry-bits.ts";
import { KeyPresence } from "../../../../src/agent/cache/index/key-presence.ts";
import { SharedHeader } from "../../../../src/agent/cache/index/shared-header.ts";
import { FakePort, settled, VirtualTimers } from "../../../support/cache-model-time.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import {
  begin,
  clear,
  isHit,
  keyOf,
  memoryOf,
  metaOf,
  openedRig,
  openRig,
  store,
  tamper,
  viewArrived,
  type Rig,
} from "../rig.ts";
import { openIndexIn } from "../still-index.ts";

const owedMax = 4_096;

/** A worker's line, with the test at the other end: nothing is answered but by it. */
class Line implements Disposable {
  readonly link: IndexLink;
  readonly #control = new FakePort();
  #worker = new FakePort();
  #thread = new FakePort();

  constructor() {
    this.link = new IndexLink(this.#control.port, () => undefined);
    this.attach();
  }

  /** To an index thread that has not been told anything. */
  attach(): void {
    [this.#worker, this.#thread] = FakePort.pair();
    const message = { kind: "attached", port: this.#worker };
    this.#control.inbox.push({ kind: "message", message });
    this.#control.deliver();
  }

  show(incarnation: number): void {
    const bits = EntryBits.allocate(1).buffer;
    const fresh = EntryBits.allocate(1).buffer;
    const view: View = { incarnation, run: "run", bits, fresh, baseId: 1, suspectTo: 0 };
    this.#answer({ kind: "view", view });
  }

  done(no: number): void {
    this.#answer({ kind: "invalidated", no, fault: undefined });
  }

  #answer(message: unknown): void {
    this.#thread.postMessage(message);
    this.#worker.deliver();
  }

  /** What the index thread was sent and had not read yet. */
  read(): WorkerToIndexer[] {
    return this.#thread.inbox
      .splice(0)
      .flatMap((item) => (item.kind === "message" ? [item.message as WorkerToIndexer] : []));
  }

  readNos(): number[] {
    return this.read().flatMap((sent) => (sent.kind === "invalidate" ? [sent.no] : []));
  }

  /** One after the other; where in `ended` each has ended, and how. */
  invalidate(count: number): { readonly ended: string[] } {
    const ended: string[] = [];
    for (let at = 0; at < count; at++)
      this.link.invalidate(keyOf({ path: `/${at}` })).then(
        () => (ended[at] = "done"),
        (error: unknown) => (ended[at] = String(error)),
      );
    return { ended };
  }

  [Symbol.dispose](): void {
    this.link[Symbol.dispose]();
  }
}

describe("an index thread that does not answer", () => {
  test("is sent an invalidation although no more commits may be on their way", async () => {
    using _timers = new VirtualTimers();
    using line = new Line();
    line.show(1);
    const candidate = { key: keyOf(), meta: metaOf(), body: null, size: 0, invalidationMark: null };
    const commit = { kind: "commit", incarnation: 1, candidate } as const;
    const commits = Array.from({ length: 300 }, () => line.link.submit(commit));
    const reason = "too many responses are being stored";
    expect(await commits.at(-1)).toMatchObject({ outcome: { kind: "failed", reason } });
    line.read();
    const { ended } = line.invalidate(1);
    const [no = 0] = line.readNos();
    line.done(no);
    await settled();
    expect(ended).toEqual(["done"]);
  });

  test("is sent thousands at a time; the others wait their turn, and all are done", async () => {
    using _timers = new VirtualTimers();
    using line = new Line();
    line.show(1);
    const { ended } = line.invalidate(owedMax + 10);
    const sent = line.readNos();
    expect(sent).toHaveLength(owedMax);
    for (const no of sent.slice(0, 3)) line.done(no);
    const next = line.readNos();
    expect(next).toHaveLength(3);
    for (const no of [...sent.slice(3), ...next]) line.done(no);
    for (const no of line.readNos()) line.done(no);
    await settled();
    expect(ended).toEqual(Array.from({ length: owedMax + 10 }, () => "done"));
  });

  test("keeps nobody waiting for good, and what it owes is asked of the next", async () => {
    using timers = new VirtualTimers();
    using line = new Line();
    line.show(1);
    const { ended } = line.invalidate(2);
    const sent = line.readNos();
    timers.pass();
    await settled();
    const told = expect.stringContaining("not invalidated: the index did not answer");
    expect(ended).toEqual([told, told]);
    line.attach();
    expect(line.readNos()).toEqual(sent);
    line.done(sent[0] ?? 0);
    line.attach();
    expect(line.readNos()).toEqual(sent.slice(1));
  });

  test("has to drop everything once more wait for it than can be remembered", async () => {
    using timers = new VirtualTimers();
    using line = new Line();
    line.show(1);
    line.invalidate(owedMax);
    timers.pass();
    line.attach();
    line.show(2);
    expect(line.read().map(({ kind }) => kind)).not.toContain("damaged");
    line.invalidate(1);
    timers.pass();
    line.attach();
    expect(line.read().map(({ kind }) => kind)).not.toContain("damaged"); // Of which index is not known yet.
    line.show(3);
    expect(line.read()).toMatchObject([{ kind: "damaged", incarnation: 3 }]);
    line.show(4);
    expect(line.read()).toEqual([]);
  });
});

test("an invalidation that comes before the index is open is done when it is", async () => {
  using dir = tempDir();
  const key = keyOf({ path: "/cart" });
  {
    await using rig = await openedRig(dir.path);
    await store(rig.cache, key);
  }
  await using rig = openRig(dir.path);
  await rig.cache.invalidate(key);
  await viewArrived(rig);
  expect(isHit(rig.cache, key)).toBe(false);
});

test("an invalidation that comes while the index is being opened is told once that has failed", async () => {
  using dir = tempDir();
  using timers = new VirtualTimers();
  const directory = join(dir.path, "cache");
  writeFileSync(directory, "in the way");
  const told: unknown[] = [];
  const facts = { epoch: null, clearSeq: 0, clearNo: 0, opening: null };
  const header = SharedHeader.allocate();
  const keys = KeyPresence.allocate();
  const thread = new IndexThread({
    init: {
      directory,
      matcherEntry: "file:///",
      diskMax: 1,
      freeMin: 0,
      matchBudgetMs: 1,
      facts,
      header,
      keys,
    },
    clock: { nowS: () => 0, elapsedMs: () => 0, rest: () => undefined },
    tell: (message) => void told.push(message),
    sync: () => Promise.resolve(false),
    checkpointerEntry: new URL("file:///"),
  });
  const opened = thread.open();
  const [worker, line] = FakePort.pair();
  thread.onMain({ kind: "attach", port: line.port });
  worker.postMessage({ kind: "invalidate", no: 7, key: keyOf() });
  line.deliver();
  timers.turn();
  expect(worker.inbox).toEqual([]);
  await opened;
  timers.turn();
  const message = { kind: "invalidated", no: 7, fault: "the cache index is closed" };
  expect(worker.inbox).toEqual([{ kind: "message", message }]);
  thread.onMain({ kind: "call", no: 1, call: { name: "close", asked: { isHandedOver: false } } });
  const closed = expect.objectContaining({ kind: "answer", no: 1 });
  await until("it is closed", () => told.length > 1);
  expect(told.at(-1)).toEqual(closed);
});

describe("without an index", () => {
  /** One entry is in the index that cannot be opened. */
  const key = keyOf({ path: "/cart" });
  async function away(dir: string): Promise<{ readonly comeBack: () => void }> {
    {
      await using rig = await openedRig(dir);
      await store(rig.cache, key);
    }
    const cache = join(dir, "cache");
    renameSync(cache, `${cache}-away`);
    writeFileSync(cache, "in the way");
    return {
      comeBack: () => {
        rmSync(cache);
        renameSync(`${cache}-away`, cache);
      },
    };
  }
  const refused = (rig: Rig): Promise<unknown> =>
    until("the refusal is told", () => rig.health.list()[0]?.code === "cache_closed");

  test("an invalidation is told so, and nothing of before is shared, stored or served by the index that opens in the end", async () => {
    using dir = tempDir();
    const { comeBack } = await away(dir.path);
    await using rig = openRig(dir.path);
    await refused(rig);
    const sourceNo = rig.cache.sourceNo();
    const mark = rig.cache.clearMark(key);
    const asked = rig.cache.invalidate(key);
    expect(rig.cache.clearMark(key)).not.toBe(mark);
    await expect(asked).rejects.toThrow("not invalidated: the cache index is closed");
    expect(rig.cache.sourceNo()).toBeGreaterThan(sourceNo);
    comeBack();
    await clear(rig, ["path:unrelated"], { domain: "b.test" }).applied; // For which opening is tried at once.
    await viewArrived(rig);
    expect(isHit(rig.cache, key)).toBe(false);
    expect(await store(rig.cache, key, "old", { sourceNo })).toEqual({ kind: "blocked" });
    expect((await store(rig.cache, key, "new")).kind).toBe("stored");
  });

  test("an invalidation counts for the next process, too", async () => {
    using dir = tempDir();
    const { comeBack } = await away(dir.path);
    const memory = memoryOf(dir.path);
    const before = memory.read().clearNo;
    {
      await using rig = openRig(dir.path, { memory });
      await refused(rig);
      await rig.cache.invalidate(key).catch(() => undefined);
      await until("it is noted", () => memory.read().clearNo > before);
    }
    comeBack();
    await using rig = await openedRig(dir.path, { memory });
    expect(isHit(rig.cache, key)).toBe(false);
  });
});

describe("of what has no entry", () => {
  const key = keyOf({ path: "/cart" });
  /** With an index whose keys are known. */
  async function knownRig(dir: string): Promise<Rig> {
    const rig = await openedRig(dir);
    const keys = new KeyPresence(rig.client.workerInit().init.keys);
    await until("the keys are read", async () => Promise.resolve(keys.isAbsent(key)));
    return rig;
  }

  test("the index is not asked, and what was being fetched is not stored", async () => {
    using dir = tempDir();
    await using rig = await knownRig(dir.path);
    const { cache } = rig;
    const moved = marksMoved(rig, [key]);
    const sourceNo = cache.sourceNo();
    const writer = begin(cache, key);
    await writer.write(Buffer.from("of before"));
    await cache.invalidate(key);
    expect(cache.sourceNo()).toBe(sourceNo);
    expect(moved()).toEqual([1]);
    expect(await writer.commit(metaOf({ sourceNo }))).toEqual({ kind: "blocked" });
    expect(isHit(cache, key)).toBe(false);
    expect(await store(cache, key, "of now")).toMatchObject({ kind: "stored" });
    expect(isHit(cache, key)).toBe(true);
  });

  test("one that comes behind the commit finds it, and removes it", async () => {
    using dir = tempDir();
    await using rig = await knownRig(dir.path);
    const { cache } = rig;
    await store(cache, key, "of before");
    const sourceNo = cache.sourceNo();
    await cache.invalidate(key);
    expect(cache.sourceNo()).toBeGreaterThan(sourceNo);
    expect(isHit(cache, key)).toBe(false);
  });

  test("that a key has an entry is shown before the mark of the fetch is compared", async () => {
    using dir = tempDir();
    const header = new SharedHeader(SharedHeader.allocate());
    const keys = new KeyPresence(KeyPresence.allocate());
    await using opened = await openIndexIn(dir.path, { header, keys });
    while (opened.index.step());
    expect(keys.isAbsent(key)).toBe(true);
    const isAbsentThen: boolean[] = [];
    using _ = vi.spyOn(header, "invalidationMark").mockImplementation(() => {
      isAbsentThen.push(keys.isAbsent(key));
      return 7;
    });
    const of = { key, meta: metaOf({ sourceNo: opened.index.clears.newest }), body: null, size: 0 };
    const outcomes = [8, 7].map((invalidationMark) =>
      opened.index.write([{ kind: "commit", candidate: { ...of, invalidationMark } }]),
    );
    expect(isAbsentThen).toEqual([false, false]);
    expect(outcomes.flat().map((outcome) => outcome?.kind)).toEqual(["blocked", "stored"]);
  });
});

/** How often the marks of the keys have moved since it was called. */
function marksMoved({ cache }: Pick<Rig, "cache">, keys: readonly EntryKey[]): () => number[] {
  const marks = keys.map((key) => cache.clearMark(key));
  return () => keys.map((key, at) => cache.clearMark(key) - (marks[at] ?? 0));
}

test("an invalidation whose commit the disk refuses drops everything, and no fetch of before is shared or stored", async () => {
  using dir = tempDir();
  await using rig = await openedRig(dir.path);
  const [key, other] = [keyOf({ path: "/cart" }), keyOf({ path: "/y", domain: "b.test" })];
  for (const one of [key, other]) await store(rig.cache, one);
  tamper(
    dir.path,
    "CREATE TRIGGER refuse BEFORE UPDATE OF clear_no ON state BEGIN SELECT RAISE(ABORT, 'disk'); END",
  );
  const sourceNo = rig.cache.sourceNo();
  const moved = marksMoved(rig, [key, other]);
  await rig.cache.invalidate(key);
  expect(rig.cache.sourceNo()).toBeGreaterThan(sourceNo);
  // Once by the worker, when no number was given yet; and with the number of the new index.
  expect(moved()).toEqual([2, 1]);
  await viewArrived(rig);
  expect([key, other].map((one) => isHit(rig.cache, one))).toEqual([false, false]);
  expect(await store(rig.cache, key, "old", { sourceNo })).toEqual({ kind: "blocked" });
});
