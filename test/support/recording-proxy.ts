// A TCP proxy that remembers what went through it, both ways: what a program says to its peer can be looked up afterwards.

import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";

const rememberedBytesMax = 8 * 2 ** 20;

export async function startRecordingProxy(
  targetPort: number,
): Promise<AsyncDisposable & { readonly port: number; recorded(): string }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const remember = (chunk: Buffer): void => {
    bytes += chunk.byteLength;
    if (bytes <= rememberedBytesMax) chunks.push(chunk);
  };
  const server = createServer((incoming) => {
    const outgoing = connect(targetPort, "127.0.0.1");
    for (const [from, to] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      from.on("data", remember);
      from.on("error", () => to.destroy());
      from.on("close", () => to.destroy());
      from.pipe(to);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // A server that listens on TCP has such an address.
  const { port } = server.address() as AddressInfo;
  return {
    port,
    recorded: () => Buffer.concat(chunks).toString("latin1"),
    [Symbol.asyncDispose]: async () => {
      server.close();
      await Promise.resolve();
    },
  };
}
