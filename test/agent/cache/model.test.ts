// Random sequences of what happens to a cache against a naive model: nothing whose source was read before a clear that matches it is served after that
// clear was applied; and nothing else is missing.

import * as fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";
import {
  bodyOf,
  clear,
  keyOf,
  openedRig,
  store,
  viewArrived,
  type Rig,
  killThread,
  mortalIndexer,
} from "./rig.ts";
import type { EntryKey } from "../../../src/agent/cache/entry.ts";

type Page = {
  readonly path: string;
  readonly query: string;
  readonly mime: string;
  readonly sub: boolean;
};
const pages: readonly Page[] = [
  { path: "/", query: "", mime: "text/html", sub: false },
  { path: "/blog", query: "", mime: "text/html", sub: false },
  { path: "/blog/a", query: "", mime: "text/html", sub: true },
  { path: "/blog/a", query: "page=2", mime: "text/html", sub: false },
  { path: "/img/a.png", query: "", mime: "image/png", sub: false },
  { path: "/img/%C3%A9.png", query: "", mime: "image/png", sub: true },
];
/** What each pattern means, said without FTS5. */
const patterns: readonly { readonly fts: string; readonly means: (page: Page) => boolean }[] = [
  { fts: "path:^xend", means: ({ path }) => path === "/" },
  { fts: "path:^blog", means: ({ path }) => path.startsWith("/blog") },
  { fts: 'path:^"blog xend"', means: ({ path }) => path === "/blog" },
  { fts: 'mime:"image/png"', means: ({ mime }) => mime === "image/png" },
  { fts: "query:page", means: ({ query }) => query !== "" },
  { fts: "path:é", means: ({ path }) => path.includes("%C3%A9") },
  { fts: "kind:generated", means: () => true },
  { fts: "path:elsewhere", means: () => false },
];

const page = fc.nat(pages.length - 1);
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("start" as const), page }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("finish" as const), pick: fc.nat(9) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("clear" as const),
      patterns: fc.uniqueArray(fc.nat(patterns.length - 1), { minLength: 1, maxLength: 2 }),
      subOnly: fc.boolean(),
      /** Fetches that end while the clear is under way. */
      meanwhile: fc.nat(3),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("invalidate" as const), page }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("dropSub" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("killThread" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;
/** `clears`, `deaths`: how many the model had seen when the source was read. */
type Fetch = {
  readonly page: number;
  readonly body: string;
  readonly sourceNo: number;
  readonly invalidationMark: number;
  readonly clears: number;
  readonly deaths: number;
};

const dir = tempDir();
const scripts = tempDir();
const entry = mortalIndexer(scripts.path);
/** A busy machine may take long to start a matcher anew: here no clear widens for that. */
const matchBudgetMs = 20_000;
const open = (): Promise<Rig> => openedRig(dir.path, { entry, matchBudgetMs });
let rig = await open();
afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
  scripts[Symbol.dispose]();
});

class Walk {
  readonly #domain: string;
  /** Page → body that must be served. */
  readonly #stored = new Map<number, string>();
  /** Each as the pages that it matches. */
  readonly #clears: ReadonlySet<number>[] = [];
  #fetches: Fetch[] = [];
  #bodies = 0;
  #deaths = 0;

  constructor(domain: string) {
    this.#domain = domain;
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case "start": {
        const body = `${this.#domain} ${++this.#bodies}`;
        this.#fetches.push({
          page: step.page,
          body,
          sourceNo: rig.cache.sourceNo(),
          invalidationMark: rig.cache.invalidationMark(this.#key(step.page)),
          clears: this.#clears.length,
          deaths: this.#deaths,
        });
        return;
      }
      case "finish":
        return this.#finish(step.pick);
      case "clear":
        return this.#clear(step);
      case "invalidate":
        await rig.cache.invalidate(this.#key(step.page));
        return this.#hit(new Set([step.page]));
      case "dropSub":
        await rig.client.dropHost(`sub.${this.#domain}`);
        return this.#hit(matching((page) => page.sub));
      case "restart":
        this.#fetches = []; // They end with the process.
        await rig[Symbol.asyncDispose]();
        rig = await open();
        return;
      case "killThread": {
        this.#deaths++;
        const before = rig.cache.sourceNo();
        killThread(dir.path);
        await until(
          "the thread is gone",
          async () => (await store(rig.cache, keyOf({ domain: "probe.test" }))).kind === "failed",
        );
        await viewArrived(rig);
        expect(rig.cache.sourceNo()).toBeGreaterThanOrEqual(before);
      }
    }
  }

  async check(): Promise<void> {
    const served = new Map<number, string>();
    for (const at of pages.keys()) {
      const body = await bodyOf(rig.cache, this.#key(at));
      if (body !== undefined) served.set(at, body);
    }
    expect(Object.fromEntries(served)).toEqual(Object.fromEntries(this.#stored));
  }

  async #finish(pick: number): Promise<void> {
    const [fetch] = this.#fetches.splice(pick % Math.max(1, this.#fetches.length), 1);
    if (fetch === undefined) return;
    const outcome = await this.#commit(fetch);
    this.#settle(fetch, outcome, new Set());
  }

  async #clear({
    patterns: chosen,
    subOnly,
    meanwhile,
  }: Extract<Step, { do: "clear" }>): Promise<void> {
    const host = subOnly ? `sub.${this.#domain}` : null;
    const hits = matching(
      (page) => (page.sub || !subOnly) && chosen.some((at) => patterns[at]?.means(page) === true),
    );
    const { applied } = clear(
      rig,
      chosen.map((at) => patterns[at]?.fts ?? ""),
      { domain: this.#domain, host },
    );
    const late = this.#fetches.splice(0, meanwhile);
    const outcomes = await Promise.all(late.map((fetch) => this.#commit(fetch)));
    expect((await applied).widened).toBe(false);
    late.forEach((fetch, i) => this.#settle(fetch, outcomes[i], hits));
    this.#hit(hits);
  }

  async #commit({ page, body, sourceNo, invalidationMark }: Fetch): Promise<string> {
    const mime = pages[page]?.mime ?? "";
    const about = { sourceNo, invalidationMark, mime };
    return (await store(rig.cache, this.#key(page), body, about)).kind;
  }

  /** `under`: what the clear that was under way matches; it may come before or after. */
  #settle(fetch: Fetch, outcome: string | undefined, under: ReadonlySet<number>): void {
    const isHit = this.#clears.slice(fetch.clears).some((clear) => clear.has(fetch.page));
    if (isHit) expect(outcome).toBe("blocked");
    if (outcome === "stored") this.#stored.set(fetch.page, fetch.body);
    else if (!isHit && !under.has(fetch.page)) {
      // A new thread does not know what each number before it stood for: what is older is refused, and what it would have replaced is dropped.
      expect(outcome).toBe("blocked");
      expect(this.#deaths).toBeGreaterThan(fetch.deaths);
      this.#stored.delete(fetch.page);
    }
  }

  #hit(hits: ReadonlySet<number>): void {
    this.#clears.push(hits);
    for (const at of hits) this.#stored.delete(at);
  }

  #key(at: number): EntryKey {
    const { path, query, sub } = pages[at] ?? { path: "", query: "", sub: false };
    return keyOf({
      domain: this.#domain,
      host: sub ? `sub.${this.#domain}` : this.#domain,
      path,
      query,
    });
  }
}

function matching(means: (page: Page) => boolean): ReadonlySet<number> {
  return new Set([...pages.keys()].filter((at) => pages[at] !== undefined && means(pages[at])));
}

let walks = 0;

test("a cache under random stores, clears, invalidations, restarts and deaths of its thread", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const walk = new Walk(`d${++walks}.test`);
      for (const next of steps) {
        await walk.take(next);
        await walk.check();
      }
    }),
    // Each run leaves its traces in the index: what failed once is told as it was, not shrunk.
    { numRuns: 15, endOnFailure: true },
  );
}, 300_000);
