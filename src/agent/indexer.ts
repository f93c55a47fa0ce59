// The root of the index thread, the only writer of the cache index.

import { execFile } from "node:child_process";
import { parentPort, workerData } from "node:worker_threads";
import { entryUrl } from "../base/entry.ts";
import { IndexThread } from "./cache/index/index-thread.ts";
import { threadData } from "../base/prepared-threads.ts";
import { rest } from "../base/rest.ts";
import { collectStartGarbage } from "../base/start-garbage.ts";
import type { IndexerInit, IndexerToMain, MainToIndexer } from "./cache/messages.ts";

/** The longest time that a stop waits for the file system to be synced. */
const syncMs = 10_000;

const port = parentPort;
if (port === null) throw new TypeError("the index thread is started by main");

const thread = new IndexThread({
  // Main starts this thread with nothing else.
  init: (await threadData(workerData)) as IndexerInit,
  clock: {
    nowS: () => Math.floor(Date.now() / 1_000),
    elapsedMs: () => performance.now(),
    rest,
  },
  tell: (message: IndexerToMain) => port.postMessage(message),
  // Node has no syncfs(2); coreutils' sync has it.
  sync: (directory) =>
    new Promise((resolve) => {
      execFile("sync", ["-f", directory], { timeout: syncMs }, (error) => resolve(error === null));
    }),
  checkpointerEntry: entryUrl(import.meta.url, "./checkpointer"),
});
// Main sends nothing else.
port.on("message", (message: MainToIndexer) => thread.onMain(message));
await thread.open();
collectStartGarbage({ firstMs: 4_000 });
