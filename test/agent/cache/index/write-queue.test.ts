// What workers send to the index, over real ports into a real index: whose answer it is, and what becomes of it when the index closes.

import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { MessageChannel } from "node:worker_threads";
import { expect, test } from "vitest";
import type { IndexerToWorker, WorkerToIndexer } from "../../../../src/agent/cache/messages.ts";
import type { StoredBody } from "../../../../src/agent/cache/entry.ts";
import { WriteQueue, type StoreTrouble } from "../../../../src/agent/cache/index/write-queue.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { keyOf, metaOf } from "../rig.ts";
import { openIndexIn, type StillIndex } from "../still-index.ts";

const queueOf = (
  { keeper }: StillIndex,
  onTrouble: (trouble: StoreTrouble | undefined) => void = () => undefined,
): WriteQueue =>
  new WriteQueue({
    keeper,
    clock: { nowS: () => 1_900_000_000, elapsedMs: () => 0, rest: () => undefined },
    isClearing: () => false,
    onTrouble,
  });

/** A worker's end of the line. */
class Worker implements Disposable {
  readonly closed: Promise<unknown>;
  readonly #port;
  readonly #told: IndexerToWorker[] = [];
  #more = Promise.withResolvers<void>();

  constructor(queue: WriteQueue) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    this.closed = once(port1, "close");
    port1.on("message", (message: IndexerToWorker) => {
      this.#told.push(message);
      this.#more.resolve();
    });
    queue.attach(port2);
  }

  send(message: WorkerToIndexer): void {
    this.#port.postMessage(message, []);
  }

  commit(
    no: number,
    { index }: StillIndex,
    incarnation = index.incarnation,
    body: StoredBody | null = null,
  ): void {
    const meta = metaOf({ sourceNo: index.clears.newest });
    const candidate = {
      key: keyOf({ path: `/${no}` }),
      meta,
      body,
      size: 0,
      invalidationMark: null,
    };
    this.send({ kind: "commit", no, incarnation, candidate });
  }

  async next(): Promise<IndexerToWorker> {
    for (;;) {
      const message = this.#told.shift();
      if (message !== undefined) return message;
      this.#more = Promise.withResolvers();
      await this.#more.promise;
    }
  }

  [Symbol.dispose](): void {
    this.#port.close();
  }
}

test("a worker is shown the index, and each is answered what it sent itself", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  using queue = queueOf(opened);
  using one = new Worker(queue);
  using other = new Worker(queue);
  const view = { incarnation: opened.index.incarnation, bits: opened.index.bits.buffer };
  for (const worker of [one, other])
    expect(await worker.next()).toMatchObject({ kind: "view", view });
  one.commit(7, opened);
  other.commit(8, opened);
  const stored = { kind: "stored", id: expect.any(Number) };
  expect(await one.next()).toEqual({ kind: "committed", no: 7, outcome: stored });
  expect(await other.next()).toEqual({ kind: "committed", no: 8, outcome: stored });
  expect(opened.index.entries.count).toBe(2);
});

test("what was meant for an index of before is not stored in this one", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  using queue = queueOf(opened);
  using worker = new Worker(queue);
  await worker.next();
  worker.commit(1, opened, opened.index.incarnation - 1);
  const reason = "the cache index was opened anew meanwhile";
  expect(await worker.next()).toEqual({
    kind: "committed",
    no: 1,
    outcome: { kind: "failed", reason },
  });
  // Nor is this one dropped for it.
  worker.send({ kind: "damaged", incarnation: opened.index.incarnation - 1, reason: "old" });
  worker.commit(2, opened);
  expect(await worker.next()).toMatchObject({ no: 2, outcome: { kind: "stored" } });
  expect(queue.failed).toBe(1);
});

test("from its end on nothing is committed, and workers see their lines closed", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  const queue = queueOf(opened);
  using worker = new Worker(queue);
  await worker.next();
  worker.commit(1, opened);
  await worker.next();
  while (opened.index.step()); // So that the queue has nothing else to do.
  await setImmediate();
  queue[Symbol.dispose]();
  worker.commit(2, opened);
  const what = await Promise.race([worker.closed.then(() => "closed"), worker.next()]);
  expect(what).toBe("closed");
  expect(opened.index.entries.count).toBe(1);
});

test("what is sent while no index is open is answered so", async () => {
  using dir = tempDir();
  const opened = await openIndexIn(dir.path);
  using queue = queueOf(opened);
  using worker = new Worker(queue);
  await worker.next();
  await opened[Symbol.asyncDispose]();
  worker.commit(1, opened);
  expect(await worker.next()).toMatchObject({ no: 1, outcome: { kind: "failed" } });
  worker.send({ kind: "invalidate", no: 2, key: keyOf() });
  expect(await worker.next()).toEqual({
    kind: "invalidated",
    no: 2,
    fault: "the cache index is closed",
  });
});

test("a file that cannot be written is told until one is stored again, whatever small ones are stored", async () => {
  using dir = tempDir();
  await using opened = await openIndexIn(dir.path);
  const troubles: (StoreTrouble | undefined)[] = [];
  using queue = queueOf(opened, (trouble) => troubles.push(trouble));
  using worker = new Worker(queue);
  await worker.next(); // The view.
  for (let no = 0; no < 3; no++) worker.send({ kind: "unwritten", reason: "ENOSPC" });
  worker.commit(1, opened);
  await worker.next();
  expect(troubles).toEqual([{ what: "larger responses", reason: "ENOSPC" }]);
  const { incarnation, run } = opened.index;
  const file = { kind: "file", object: `${run}-1`, digest: Buffer.alloc(32) } as const;
  worker.commit(2, opened, incarnation, file);
  expect(await worker.next()).toMatchObject({ outcome: { kind: "stored" } });
  expect(troubles.slice(1)).toEqual([undefined]);
});
