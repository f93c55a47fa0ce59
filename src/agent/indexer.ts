// The index thread: the only writer of the cache index.

import { execFile } from "node:child_process";
import { parentPort, workerData } from "node:worker_threads";
import { entryUrl } from "../base/entry.ts";
import { IndexThread } from "./cache/index/index-thread.ts";
import { rest } from "../base/rest.ts";
import type { IndexerInit, IndexerToMain, MainToIndexer } from "./cache/messages.ts";

/** A file system that cannot be written out by then is not waited for at a stop. */
const syncMs = 10_000;

const port = parentPort;
if (port === null) throw new TypeError("the index thread is started by main");

const thread = new IndexThread({
  // Main starts this thread with nothing else.
  init: workerData as IndexerInit,
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
// Main says nothing else.
port.on("message", (message: MainToIndexer) => thread.onMain(message));
await thread.open();
