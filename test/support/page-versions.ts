// An origin whose pages have versions: each answer is the version that its page has at that moment, and may be cached for an hour.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export type PageVersions = AsyncDisposable & {
  readonly url: string;
  /** Changes the page `/page/<no>`. */
  readonly change: (no: number) => void;
  readonly of: (no: number) => number;
};

/** `tags`: what each answer names as its tags. */
export async function startPageVersions(pages: number, tags?: string): Promise<PageVersions> {
  const versions = new Uint32Array(pages);
  const server = createServer(({ url = "/" }, response) => {
    const no = Number(/^\/page\/(\d+)$/.exec(url)?.[1] ?? -1);
    const body = String(versions[no] ?? "none");
    response.writeHead(200, {
      "content-type": "text/plain",
      "content-length": body.length,
      "cache-control": "public, max-age=3600",
      ...(tags !== undefined && { "cache-tags": tags }),
    });
    response.end(body);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  return {
    url: `http://127.0.0.1:${port}`,
    change: (no) => void (versions[no] = (versions[no] ?? 0) + 1),
    of: (no) => versions[no] ?? 0,
    [Symbol.asyncDispose]: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}
