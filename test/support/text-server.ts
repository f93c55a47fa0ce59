// A server that answers everything with a text, which tests may change.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export async function startTextServer(
  text: () => string,
): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer((_request, response) => response.end(text()));
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  return {
    url: `http://127.0.0.1:${port}/list.txt`,
    async [Symbol.asyncDispose]() {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}
