// The ports that the workers will share, found free before any of them listens.

import { createServer, type Server } from "node:net";
import { listenText, type ListenAddress } from "../../../base/settings-fields.ts";
import { AccelError, messageOf } from "../../../core/faults.ts";

/** The addresses at which visitors arrive. */
export type Listens = {
  readonly listen: ListenAddress;
  /** Null or absent: HTTPS is not served. */
  readonly tlsListen?: ListenAddress | null;
};

/** Port 0 takes a free one. Both are held until both are found: the system may give a free one again. Throws PORT_TAKEN or ADDRESS_UNUSABLE. */
export async function findPorts({ listen, tlsListen = null }: Listens): Promise<Listens> {
  const held: Server[] = [];
  const find = async (address: ListenAddress): Promise<ListenAddress> => {
    const server = createServer();
    held.push(server);
    return { ...address, port: await hold(server, address) };
  };
  try {
    const plain = await find(listen);
    return { listen: plain, tlsListen: tlsListen === null ? null : await find(tlsListen) };
  } finally {
    await Promise.all(held.map(release));
  }
}

/**
 * Holds a port without reusePort, so that a port in use is an error: with it, a second agent would steal
 * visitors.
 */
async function hold(server: Server, { host, port }: ListenAddress): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once("error", (error: Error & { code?: string }) => {
    const place = listenText({ host, port });
    reject(
      error.code === "EADDRINUSE"
        ? new AccelError("PORT_TAKEN", `${place} is in use by another process`)
        : new AccelError("ADDRESS_UNUSABLE", `cannot listen on ${place}: ${messageOf(error)}`),
    );
  });
  server.listen({ host, port, exclusive: true }, () => {
    const address = server.address();
    resolve(address !== null && typeof address === "object" ? address.port : port);
  });
  return promise;
}

async function release(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve()); // Also called where it never listened.
  return promise;
}
