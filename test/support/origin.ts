// A small origin: cacheable pages with a counter, so that a hit and a miss can be told apart by their body.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export type Origin = AsyncDisposable & {
  readonly url: string;
  readonly requests: () => number;
  /** Requests for `/page/held` that wait for `release`. */
  readonly held: () => number;
  readonly release: () => void;
};

/** `/page/…` cacheable for 600 s, `/private` no-store, everything else 404. Each body says how many requests came before it, but for that of `/page/same`. */
export async function startOrigin({ host = "127.0.0.1" } = {}): Promise<Origin> {
  let requests = 0;
  let held: (() => void)[] = [];
  const server = createServer((incoming, response) => {
    requests++;
    const path = (incoming.url ?? "/").split("?", 1)[0] ?? "/";
    const cacheable = path.startsWith("/page/");
    const known = cacheable || path === "/private";
    response.writeHead(known ? 200 : 404, {
      "content-type": "text/html; charset=utf-8",
      "cache-control": cacheable ? "public, max-age=600" : "no-store",
    });
    const body = path === "/page/same" ? path : `${path} answer ${requests}`;
    if (path === "/page/held") held.push(() => response.end(body));
    else response.end(body);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, host, resolve);
  await promise;
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    requests: () => requests,
    held: () => held.length,
    release: () => {
      for (const end of held) end();
      held = [];
    },
    async [Symbol.asyncDispose]() {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}
