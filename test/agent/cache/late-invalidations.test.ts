// Invalidations of an agent that has handed its index over: what a worker asks for reaches whoever follows, before he follows as well, and the answer the worker.

import { once } from "node:events";
import { expect, test } from "vitest";
import { LateInvalidations } from "../../../src/agent/cache/late-invalidations.ts";
import type { EntryKey } from "../../../src/agent/cache/entry.ts";
import type { WorkerToIndexer } from "../../../src/agent/cache/messages.ts";
import { until } from "../../support/until.ts";

const keyOf = (path: string): EntryKey => ({
  domain: "a.example",
  host: "a.example",
  kind: "generated",
  path,
  query: "",
});

test("workers' invalidations are numbered anew, told once, and answered to the one that asked", async () => {
  const late = new LateInvalidations();
  const [one, two] = [late.openWorker(), late.openWorker()];
  const ask = (port: typeof one, no: number, path: string): void =>
    port.postMessage({ kind: "invalidate", no, key: keyOf(path) } satisfies WorkerToIndexer);
  const told: [number, string][] = [];
  ask(one, 7, "/one");
  late.follow(({ no, key }) => told.push([no, key.path]));
  await until("the first is told", () => told.length === 1);
  // What is not an invalidation is of an index that is gone.
  two.postMessage({ kind: "unwritten", reason: "EIO" } satisfies WorkerToIndexer);
  ask(two, 7, "/two");
  await until("both are told", () => told.length === 2);
  expect(told).toEqual([
    [1, "/one"],
    [2, "/two"],
  ]);
  const [heardByOne, heardByTwo] = [once(one, "message"), once(two, "message")];
  late.answered(2, "EIO");
  late.answered(1, undefined);
  late.answered(1, "told twice");
  expect(await heardByTwo).toEqual([{ kind: "invalidated", no: 7, fault: "EIO" }]);
  expect(await heardByOne).toEqual([{ kind: "invalidated", no: 7, fault: undefined }]);
  one.close();
  two.close();
});
