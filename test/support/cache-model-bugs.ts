// The guards of the cache, each taken away: what a model check that is worth something must find. Planted from outside, on the classes, for one run.

import { Clears } from "../../src/agent/cache/clearing/clears.ts";
import { Entries } from "../../src/agent/cache/index/entries.ts";
import { EntrySites } from "../../src/agent/cache/index/entry-sites.ts";
import { Guard } from "../../src/agent/cache/index/guard.ts";
import { PresentKeys } from "../../src/agent/cache/index/key-presence.ts";
import { OpenIndex } from "../../src/agent/cache/index/open-index.ts";
import { EntryBits } from "../../src/agent/cache/index/entry-bits.ts";
import { Softenings } from "../../src/agent/cache/clearing/softenings.ts";
import { SharedHeader } from "../../src/agent/cache/index/shared-header.ts";
import { WorkerCache } from "../../src/agent/cache/worker/worker-cache.ts";
import type { Weights } from "./cache-model-steps.ts";
import type { Bugs } from "./cache-model-walk.ts";
import { HotBodies } from "../../src/agent/cache/worker/hot-memory.ts";

export type PlantedBug = {
  readonly name: string;
  /** In what uses the cache. */
  readonly bugs?: Bugs;
  /** Where the usual steps would seldom meet it, or find it for another reason. */
  readonly weights?: Weights;
  /** In the cache; undone by what it returns. */
  readonly plant?: () => () => void;
};

// What stands in for a method gets whatever the method got, which only the method knows.
// oxlint-disable-next-line typescript/no-explicit-any
type Any = any;
type Method = (this: Any, ...args: Any[]) => Any;

function instead<T extends object>(
  prototype: T,
  name: string & keyof T,
  make: (before: Method) => Method,
): () => void {
  const before = prototype[name] as Method;
  Object.defineProperty(prototype, name, {
    value: make(before),
    configurable: true,
    writable: true,
  });
  return () =>
    Object.defineProperty(prototype, name, { value: before, configurable: true, writable: true });
}

const all =
  (...undo: readonly (() => void)[]): (() => void) =>
  () =>
    undo.forEach((one) => one());

export const plantedBugs: readonly PlantedBug[] = [
  {
    name: "the guard finds nothing",
    plant: () => instead(Guard.prototype, "firstMatch", () => () => -1),
  },
  { name: "the source number is read after the fetch", bugs: { lateSourceNo: true } },
  { name: "a 304 inserts under a new source number", bugs: { refreshInserts: true } },
  { name: "a request joins a fetch of before a clear", bugs: { joinsBlindly: true } },
  {
    name: "the clear mark does not move",
    plant: () => instead(SharedHeader.prototype, "moveClearMark", () => () => undefined),
  },
  {
    name: "the mark of what is invalidated does not move",
    plant: () => instead(SharedHeader.prototype, "moveInvalidationMark", () => () => undefined),
  },
  {
    name: "bits are not cleared",
    plant: () => instead(OpenIndex.prototype, "hideAll", () => (ids) => ids),
  },
  {
    name: "only bits of the first half of the matches are cleared",
    plant: () =>
      instead(
        OpenIndex.prototype,
        "hideAll",
        (before) =>
          function (ids: Float64Array) {
            before.call(this, ids.subarray(0, Math.ceil(ids.length / 2)));
            return ids;
          },
      ),
  },
  {
    name: "the index forgets whose an entry is",
    plant: () => instead(EntrySites.prototype, "set", () => () => undefined),
  },
  {
    name: "a clear is recorded after matching",
    plant: () => {
      const owed = new WeakMap<object, Any[]>();
      const recordLate = instead(
        OpenIndex.prototype,
        "record",
        (before) =>
          function (...args) {
            owed.set(this, [before, ...args]);
            return this.clears.newest + 1;
          },
      );
      const beforeHide = instead(
        OpenIndex.prototype,
        "hideAll",
        (before) =>
          function (ids) {
            const [record, ...args] = owed.get(this) ?? [];
            owed.delete(this);
            record?.apply(this, args);
            return before.call(this, ids);
          },
      );
      return all(recordLate, beforeHide);
    },
  },
  {
    // Here too: what agent.db remembers would find it out.
    name: "an applied clear is not written",
    bugs: { trustsAnyCopy: true },
    weights: { copy: 0, powerLoss: 0, kill: 3, order: 0 },
    plant: () => instead(Clears.prototype, "apply", () => () => undefined),
  },
  {
    // What agent.db remembers would find it out, so that guard is taken away too.
    name: "an applied clear survives no loss of power",
    bugs: { trustsAnyCopy: true },
    weights: { copy: 0, powerLoss: 3, kill: 0, order: 0 },
    plant: () =>
      instead(
        Clears.prototype,
        "apply",
        (before) =>
          function (...args) {
            withoutFullSync(() => before.apply(this, args));
          },
      ),
  },
  {
    name: "an invalidation survives no loss of power",
    weights: { powerLoss: 3, clear: 0, order: 0 },
    plant: () =>
      instead(
        OpenIndex.prototype,
        "write",
        (before) =>
          function (...args) {
            return withoutFullSync(() => before.apply(this, args));
          },
      ),
  },
  {
    name: "what clears hit is not hidden again at the start",
    plant: () => instead(Clears.prototype, "unfinished", () => () => []),
  },
  {
    name: "any copy of the index is trusted",
    bugs: { trustsAnyCopy: true },
    weights: { copy: 3, putBack: 2, kill: 0 },
  },
  {
    name: "ids are given twice",
    plant: () =>
      instead(
        Entries.prototype,
        "put",
        (before) =>
          function (...asked) {
            below.index?.exec(
              "UPDATE sqlite_sequence SET seq = coalesce((SELECT max(id) FROM entry), 0)",
            );
            return before.apply(this, asked);
          },
      ),
  },
  { name: "an unlinked domain keeps its entries", bugs: { unlinkForgets: true } },
  {
    name: "an invalidation does not concern what is being fetched",
    weights: { invalidate: 6 },
    plant: () => instead(SharedHeader.prototype, "invalidationMark", () => () => 0),
  },
  {
    name: "a stored key is said to have no entry",
    weights: { invalidate: 6 },
    plant: () => instead(PresentKeys.prototype, "add", () => () => undefined),
  },
  {
    name: "a variant outlives its base",
    weights: {
      startVariant: 30,
      finishRevision: 30,
      invalidate: 10,
      hold: 30,
      send: 10,
      clear: 1,
      order: 0,
    },
    plant: () => {
      const coded = new Set<number>();
      return all(
        instead(
          WorkerCache.prototype,
          "servable",
          (before) =>
            function (entry) {
              return before.call(this, { ...entry, baseId: null });
            },
        ),
        instead(
          Entries.prototype,
          "putVariant",
          (before) =>
            function (...args) {
              const put = before.apply(this, args);
              coded.add(put.id);
              return put;
            },
        ),
        instead(
          EntryBits.prototype,
          "unset",
          (before) =>
            function (id: number) {
              if (!coded.has(id)) before.call(this, id);
            },
        ),
      );
    },
  },
  { name: "a static file of an earlier release is a hit", bugs: { ignoresDigest: true } },
  {
    name: "look-ups are not told of a commit",
    plant: () => instead(SharedHeader.prototype, "moveKeyMark", () => () => undefined),
  },
  {
    name: "bodies in memory are those of other entries",
    plant: () =>
      instead(
        HotBodies.prototype,
        "get",
        (before) =>
          function (id: number) {
            return before.call(this, id) ?? before.call(this, id - 1);
          },
      ),
  },
  {
    name: "what the lane keeps is taken for current",
    weights: { quick: 60, startRefresh: 12, finishRevision: 20 },
    plant: () => instead(WorkerCache.prototype, "isCurrent", () => () => true),
  },
  {
    name: "a soft clear makes nothing stale",
    plant: () => instead(OpenIndex.prototype, "soften", () => (ids) => ids),
  },
  {
    name: "a soft clear takes what it matches",
    weights: { soften: 10, clear: 0, order: 0 },
    plant: () =>
      instead(
        OpenIndex.prototype,
        "soften",
        (before) =>
          function (ids, sinceS) {
            this.hideAll(ids);
            return before.call(this, ids, sinceS);
          },
      ),
  },
  {
    name: "too much is made stale",
    weights: { soften: 10, clear: 2 },
    plant: () =>
      instead(
        OpenIndex.prototype,
        "soften",
        (before) =>
          function (ids: Float64Array, sinceS) {
            const last = ids.at(-1);
            const more = last === undefined ? ids : Float64Array.from([...ids, last + 1]);
            return before.call(this, more, sinceS);
          },
      ),
  },
  {
    name: "a confirmation counts that was asked for before a soft clear",
    weights: { startRefresh: 20, finishRevision: 20, soften: 20, clear: 0, order: 0, rush: 30 },
    bugs: { lateConfirmedNo: true },
  },
  {
    name: "what applied soft clears hit is fresh again after a start",
    weights: { kill: 2, clear: 2, soften: 12 },
    plant: () =>
      instead(
        Clears.prototype,
        "unfinished",
        (before) =>
          function () {
            return before.call(this).filter(({ isSoft }: { isSoft: boolean }) => !isSoft);
          },
      ),
  },
  {
    name: "what is noted as stale is fresh again after a start",
    weights: { kill: 2, clear: 2, soften: 8, rush: 20 },
    plant: () => instead(Entries.prototype, "softened", () => () => []),
  },
  {
    name: "the time of a soft clear is not shown before its entries are noted",
    weights: { soften: 10, clear: 2, lookUp: 40 },
    plant: () =>
      instead(
        Softenings.prototype,
        "announce",
        (before) =>
          function (sinceS: number) {
            before.call(this, sinceS + 100);
          },
      ),
  },
  {
    name: "too much is hidden",
    plant: () =>
      instead(
        OpenIndex.prototype,
        "hideAll",
        (before) =>
          function (ids: Float64Array) {
            const last = ids.at(-1);
            return before.call(
              this,
              last === undefined ? ids : Float64Array.from([...ids, last + 1]),
            );
          },
      ),
  },
  {
    name: "bits read as set",
    plant: () => instead(EntryBits.prototype, "has", () => () => true),
  },
];

/** What the runs see of SQLite, for bugs that lie below the classes. */
type Connection = { readonly exec: (sql: string) => unknown };
const below: { index: Connection | undefined; isFullIgnored: boolean } = {
  index: undefined,
  isFullIgnored: false,
};
export const seeIndex = (index: Connection): void => void (below.index = index);
export const ignoresFull = (): boolean => below.isFullIgnored;

function withoutFullSync<T>(action: () => T): T {
  below.isFullIgnored = true;
  try {
    return action();
  } finally {
    below.isFullIgnored = false;
  }
}
