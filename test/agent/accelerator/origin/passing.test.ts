// What is passed on changes what is stored: whoever has the answer to a change is not shown the old state afterwards, however long the cache takes.

import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect } from "node:net";
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

describe("a change that no visitor waits for any more", () => {
  const text = "POST /a HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 0\r\n\r\n";

  /** An edge with a page in its cache, and a POST to it that its origin has and does not answer yet. */
  async function written(stack: AsyncDisposableStack, method = "POST") {
    const posts: { readonly request: IncomingMessage; readonly response: ServerResponse }[] = [];
    const origin = stack.use(
      await openOrigin((request, response) => {
        response.setHeader("Cache-Control", "max-age=60");
        if (request.method === "GET" && request.url === "/a") response.end("page");
        else posts.push({ request, response });
      }),
    );
    const cache = new MemoryCache();
    const edge = stack.use(await openEdge({ cache, site: { backend: { urls: [origin.url] } } }));
    expect((await ask(edge, "/a")).text).toBe("page");
    const visitor = connect(edge.port, "127.0.0.1");
    visitor.on("error", () => {});
    visitor.write(text.replace("POST", method).replace("/a", method === "GET" ? "/b" : "/a"));
    const post = await until("the origin is asked", () => posts[0]);
    return { edge, cache, visitor, post };
  }

  it("is waited for, and drops what was stored when the origin has done it", async () => {
    await using stack = new AsyncDisposableStack();
    const { edge, visitor, post, cache } = await written(stack);
    visitor.destroy();
    await until("the visitor is known to have left", () => edge.records.length === 2);
    expect(cache.entries).toHaveLength(1);
    expect(post.request.destroyed).toBe(false);
    post.response.end("done");
    await until("the page is dropped", () => cache.entries.length === 0);
  });

  it("that the origin breaks off drops what was stored: it may have been done", async () => {
    await using stack = new AsyncDisposableStack();
    const { visitor, post, cache } = await written(stack);
    const said = once(visitor, "data").then(String);
    post.request.socket.destroy();
    expect(await said).toMatch(/^HTTP\/1\.1 502 /);
    expect(cache.entries).toHaveLength(0);
  });

  it("ends with the worker, and drops what was stored", async () => {
    await using stack = new AsyncDisposableStack();
    const { edge, visitor, post, cache } = await written(stack);
    visitor.destroy();
    await until("the visitor is known to have left", () => edge.records.length === 2);
    const cut = once(post.request.socket, "close");
    await edge.drain(0);
    await cut;
    expect(cache.entries).toHaveLength(0);
  });

  it("is not waited for where it changes nothing", async () => {
    await using stack = new AsyncDisposableStack();
    const { visitor, post, cache } = await written(stack, "GET");
    const cut = once(post.request.socket, "close");
    visitor.destroy();
    await cut;
    expect(cache.entries).toHaveLength(1);
  });
});
