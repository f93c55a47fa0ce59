// A worker's line to the index thread over real ports, with the test as main and as index thread: how many answers it waits for, and how it ends.

import { once } from "node:events";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { expect, test } from "vitest";
import { IndexLink, type Submitted } from "../../../../src/agent/cache/worker/index-link.ts";
import type {
  IndexerToWorker,
  MainToWorker,
  WorkerToIndexer,
} from "../../../../src/agent/cache/messages.ts";
import { EntryBits } from "../../../../src/agent/cache/index/entry-bits.ts";
import { keyOf, metaOf } from "../rig.ts";

const candidate = { key: keyOf(), meta: metaOf(), body: null, size: 0, invalidationMark: null };
const commit: Submitted = { kind: "commit", incarnation: 1, candidate };

class Line implements Disposable {
  readonly link: IndexLink;
  readonly main: MessagePort;
  /** Told whenever the link looks at another index, or at none. */
  onView = Promise.withResolvers<void>();

  constructor() {
    const { port1, port2 } = new MessageChannel();
    this.main = port2;
    this.link = new IndexLink(port1, () => this.onView.resolve());
  }

  /** To an index thread whose index is open; gives that thread's end of the line when the worker sees it. */
  async attach(): Promise<MessagePort> {
    const { port1: worker, port2: thread } = new MessageChannel();
    this.main.postMessage({ kind: "attached", port: worker } satisfies MainToWorker, [worker]);
    const bits = EntryBits.allocate(1).buffer;
    const fresh = EntryBits.allocate(1).buffer;
    const view = { incarnation: 1, run: "run", bits, fresh, baseId: 1, suspectTo: 0 };
    thread.postMessage({ kind: "view", view } satisfies IndexerToWorker, []);
    while (this.link.view === undefined) {
      this.onView = Promise.withResolvers();
      await this.onView.promise;
    }
    return thread;
  }

  [Symbol.dispose](): void {
    this.link[Symbol.dispose]();
    this.main.close();
  }
}

test("commits that were answered make room for others; so many are unanswered at most", async () => {
  using line = new Line();
  const thread = await line.attach();
  thread.on("message", (message: WorkerToIndexer) => {
    if (message.kind !== "commit" || message.no > 600) return;
    const outcome = { kind: "stored", id: message.no } as const;
    thread.postMessage(
      { kind: "committed", no: message.no, outcome } satisfies IndexerToWorker,
      [],
    );
  });
  for (let no = 1; no <= 600; no++)
    expect(await line.link.submit(commit)).toEqual({
      outcome: { kind: "stored", id: no },
      isCertain: true,
    });
  const unanswered = Array.from({ length: 256 }, () => line.link.submit(commit));
  expect(await line.link.submit(commit)).toEqual({
    outcome: { kind: "failed", reason: "too many responses are being stored" },
    isCertain: true,
  });
  const closed = once(thread, "close");
  line.link[Symbol.dispose]();
  const ended = { kind: "failed", reason: "the index did not answer" };
  for (const answer of unanswered)
    expect(await answer).toEqual({ outcome: ended, isCertain: false });
  await closed;
});

test("a line keeps no thread alive", async () => {
  const ports = (): number =>
    process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length;
  const before = ports();
  using line = new Line();
  await line.attach();
  expect(ports()).toBe(before);
});

test("when a worker is done with its cache main and the index thread see it, and what main sends then is not taken", async () => {
  using line = new Line();
  const thread = await line.attach();
  const closed = Promise.all([once(line.main, "close"), once(thread, "close")]);
  line.link[Symbol.dispose]();
  expect(line.link.view).toBe(undefined);
  line.onView = Promise.withResolvers();
  const { port1: late } = new MessageChannel();
  line.main.postMessage({ kind: "attached", port: late } satisfies MainToWorker, [late]);
  const what = await Promise.race([
    closed.then(() => "closed"),
    line.onView.promise.then(() => "attached again"),
  ]);
  expect(what).toBe("closed");
});

test("when the index thread ends nothing is looked at, and commits that it had not answered are not waited for", async () => {
  using line = new Line();
  const thread = await line.attach();
  const answer = line.link.submit(commit);
  thread.close();
  expect(await answer).toMatchObject({ isCertain: false });
  expect(line.link.view).toBe(undefined);
  expect(await line.link.submit(commit)).toEqual({
    outcome: { kind: "failed", reason: "there is no index" },
    isCertain: true,
  });
  await line.attach();
  expect(line.link.view).toMatchObject({ incarnation: 1 });
});
