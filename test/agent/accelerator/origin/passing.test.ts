// What is passed on changes what is stored: whoever has the answer to a change is not shown the old state afterwards, however long the cache takes.

import { describe, expect, it } from "vitest";
import { until } from "../../../support/until.ts";
import type { EntryKey } from "../../../../src/agent/cache/entry.ts";
import { ask, openEdge, openOrigin } from "../edge.ts";
import { MemoryCache } from "../memory-cache.ts";

/** A cache that takes its time to invalidate. */
class SlowCache extends MemoryCache {
  readonly gate = Promise.withResolvers<void>();
  asked = 0;

  override async invalidate(key: EntryKey): Promise<void> {
    this.asked++;
    await this.gate.promise;
    await super.invalidate(key);
  }
}

describe("the answer to a change", () => {
  it.each([10, 100_000])("comes behind what it changes, with all of its %i bytes", async (size) => {
    await using origin = await openOrigin((request, response) => {
      response.setHeader("Cache-Control", "max-age=60");
      response.end(request.method === "POST" ? "p".repeat(size) : "page");
    });
    const cache = new SlowCache();
    await using edge = await openEdge({ cache, site: { backend: { urls: [origin.url] } } });
    expect((await ask(edge, "/a")).text).toBe("page");
    let isAnswered = false;
    const posted = ask(edge, "/a", { method: "POST", body: "x" }).finally(() => {
      isAnswered = true;
    });
    await until("it is invalidated", () => cache.asked === 1);
    // Others are answered meanwhile, out of the same memory.
    for (const path of ["/b", "/c", "/d"]) expect((await ask(edge, path)).text).toBe("page");
    expect(isAnswered).toBe(false);
    expect(cache.entries.map(({ status }) => status)).toContain(200);
    cache.gate.resolve();
    expect((await posted).text).toBe("p".repeat(size));
    const { headers } = await ask(edge, "/a");
    expect(headers["cache-status"]).toContain("fwd=");
  });
});
