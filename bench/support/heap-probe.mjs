// Loaded into an agent by --import: on SIGUSR2 it prints what V8 holds for each thread, as one line of JSON on stderr.

import v8 from "node:v8";
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  const threads = new Set();
  process.on("worker", (worker) => {
    threads.add(worker);
    worker.once("exit", () => threads.delete(worker));
  });
  const row = (name, { total_heap_size, used_heap_size, external_memory, malloced_memory }) => ({
    name,
    heap: total_heap_size,
    used: used_heap_size,
    external: external_memory,
    native: malloced_memory,
  });
  process.on("SIGUSR2", async () => {
    const rows = [row("main", v8.getHeapStatistics())];
    for (const thread of threads)
      rows.push(row(thread.threadName ?? "thread", await thread.getHeapStatistics()));
    process.stderr.write(`heaps ${JSON.stringify(rows)}\n`);
  });
}
