// A file in force that cannot be read: fetched again for the domains whose version needs it, once, and not under a trial.

import { expect, test } from "vitest";
import { BadFiles } from "../../../src/agent/steering/bad-files.ts";
import { Repairs } from "../../../src/agent/steering/repairs.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { AccelError } from "../../../src/core/faults.ts";
import type { Sha256 } from "../../../src/core/ids.ts";
import { encodeManifestTable } from "../../../src/core/serving/manifest-table.ts";
import type { ServedDomain, ServingState } from "../../../src/core/serving/serving-state.ts";
import { until } from "../../support/until.ts";
import { digestOf } from "./fake-sets.ts";

const bots = {
  mode: "enforce",
  unknownBotsCanAccess: null,
  allow: new Set<string>(),
  deny: new Set<string>(),
  vip: [],
  bad: [],
} as const;

function domainOf(name: string, manifest: string, ...files: readonly Sha256[]): ServedDomain {
  const rows = files.map((sha256, i) => ({ path: `f${i}`, sha256, size: 1, mime: "text/plain" }));
  const table = encodeManifestTable(rows);
  const views = { kind: "manifest", table, prefix: "" } as const;
  return { name, manifest: digestOf(manifest), hosts: [{ name, site: null, views, bots }] };
}

const lost = digestOf("lost");
const other = digestOf("other");

const state: ServingState = {
  version: 1,
  domains: [
    domainOf("a.example", "one", other, lost),
    domainOf("b.example", "two", other),
    domainOf("c.example", "three", lost),
  ],
};

class Scene implements AsyncDisposable {
  readonly prepared: string[] = [];
  /** Looked into before the fetch. */
  readonly dropped: Sha256[] = [];
  readonly health = new Health(() => new Date(0));
  readonly onTrial = new Set<string>();
  failures = 0;
  /** For good. */
  refusal: AccelError | undefined;
  /** What each fetch waits for. */
  gate: Promise<void> = Promise.resolve();
  readonly #rests: (() => void)[] = [];
  readonly repairs: Repairs;
  readonly badFiles: BadFiles;

  constructor() {
    const stop = new AbortController().signal;
    this.repairs = new Repairs({
      serving: {
        state,
        names: (name) => ({ name, subDomains: [] }),
      },
      viewsets: {
        prepare: async (manifest, { name }) => {
          this.prepared.push(name);
          await this.gate;
          if (this.refusal !== undefined) throw this.refusal;
          if (this.failures-- > 0) throw new AccelError("CENTRAL_UNREACHABLE", "down");
          return {
            manifest,
            devlove: { domains: {} },
            table: null,
            [Symbol.dispose]: () => undefined,
          };
        },
        dropDamaged: async (files) => void this.dropped.push(...files),
      },
      health: this.health,
      log: silentLog(),
      random: () => 0,
      stop,
    });
    this.badFiles = new BadFiles({
      serving: { state },
      trials: { until: (domain) => (this.onTrial.has(domain) ? "later" : undefined) },
      repairs: this.repairs,
      stop,
      wait: async (_, stop) => {
        if (stop.aborted) return false;
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#rests.push(resolve);
        stop.addEventListener("abort", () => resolve(), { once: true });
        await promise;
        return !stop.aborted;
      },
    });
  }

  async rested(): Promise<void> {
    await until("it rests", () => this.#rests.length > 0);
    this.#rests.pop()?.();
  }

  note(sha256 = lost): void {
    this.badFiles.note({ sha256, size: 1, reason: "ENOENT" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.repairs[Symbol.asyncDispose]();
    await this.badFiles[Symbol.asyncDispose]();
  }
}

test("it is fetched again for each domain that needs it, once however often it is missed", async () => {
  await using scene = new Scene();
  scene.failures = 1;
  for (let i = 0; i < 100; i++) scene.note();
  const damaged = { code: "viewset_damaged", severity: "error" };
  expect(scene.health.list()).toMatchObject([damaged, damaged]);
  await until("both are whole", () => scene.prepared.length === 3);
  expect(scene.prepared.toSorted()).toEqual(["a.example", "a.example", "c.example"]);
  expect(scene.dropped).toEqual([lost, lost, lost]);
  await scene.rested();
  expect(scene.health.list()).toEqual([]);
  // Missed again after a rest, it is looked into again.
  await until("again", () => (scene.note(), scene.prepared.length > 3));
});

test("however many files of a version are missed, it is fetched once at a time", async () => {
  await using scene = new Scene();
  const { promise, resolve } = Promise.withResolvers<void>();
  scene.gate = promise;
  scene.onTrial.add("c.example");
  scene.note(lost);
  await until("it is being fetched", () => scene.prepared.length === 1);
  for (let i = 0; i < 10; i++) scene.note(other);
  resolve();
  await until("all that came meanwhile too", () => scene.dropped.length === 3);
  await until("it is whole", () => scene.health.list().length === 0);
  // Of b.example the other one alone was missed.
  expect(scene.prepared).toEqual(["a.example", "b.example", "a.example"]);
  expect(scene.dropped.toSorted()).toEqual([lost, other, other].toSorted());
});

test("what is on trial, and what is served no more, is left alone", async () => {
  await using scene = new Scene();
  scene.onTrial.add("a.example").add("c.example");
  scene.note();
  await scene.rested();
  scene.note(digestOf("unknown"));
  await scene.rested();
  expect(scene.prepared).toEqual([]);
  expect(scene.health.list()).toEqual([]);
});

test("mending answers whether the version is whole by then", async () => {
  await using scene = new Scene();
  const mend = async (manifest: string) =>
    scene.repairs.mend("a.example", digestOf(manifest), [lost], "EIO");
  expect(await mend("one")).toBe("whole");
  expect(scene.dropped).toEqual([lost]);
  // Another one took its place.
  expect(await mend("before")).toBe("given-up");
  expect(scene.prepared).toEqual(["a.example"]);
  expect(scene.health.list()).toEqual([]);
});

test("a file of a version that central has no more is told as not mended", async () => {
  await using scene = new Scene();
  scene.refusal = new AccelError("VIEWSET_INVALID", "no such version");
  expect(await scene.repairs.mend("a.example", digestOf("one"), [lost], "EIO")).toBe("given-up");
  expect(scene.prepared).toEqual(["a.example"]);
  expect(scene.health.list()).toMatchObject([{ code: "viewset_damaged" }]);
});
