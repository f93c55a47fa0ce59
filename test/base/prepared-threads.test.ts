// Threads that wait for their data: each goes to one who needs it, others are started anew, and those that nobody takes are ended.

import { expect, test } from "vitest";
import { PreparedThreads } from "../../src/base/prepared-threads.ts";
import { threadPeer, type ThreadEntry } from "../../src/base/thread-client.ts";

const entry = new URL("prepared-threads-child.ts", import.meta.url);

/** What a thread of this entry says that was given this. */
async function said(from: ThreadEntry, data: unknown): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  threadPeer<never, unknown>(from, { name: "child", workerData: data })({
    heard: resolve,
    gone: ({ reason }) => reject(new Error(reason)),
  });
  return promise;
}

test("the first takes the one that is ready, the second starts one, and both have their own data", async () => {
  await using threads = new PreparedThreads(entry);
  threads.start("child", 64);
  await threads.loaded();
  expect(await said(threads, { no: 1 })).toEqual({ no: 1 });
  expect(threads.take()).toBeUndefined();
  expect(await said(threads, { no: 2 })).toEqual({ no: 2 });
  expect(await said(entry, null)).toBeNull();
});

test("one whose code cannot be loaded is nobody's", async () => {
  await using threads = new PreparedThreads(new URL("there-is-none.ts", import.meta.url));
  threads.start("none", 64);
  await threads.loaded();
  expect(threads.take()).toBeUndefined();
});

test("those that nobody takes end", async () => {
  const threads = new PreparedThreads(entry);
  threads.start("child", 64);
  await threads.loaded();
  await threads[Symbol.asyncDispose]();
  expect(threads.take()).toBeUndefined();
});
