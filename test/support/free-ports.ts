// Ports that were free a moment ago: for programs that must know each other's before they start.

import { createServer, type Server } from "node:net";

export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(Array.from({ length: count }, async () => listening()));
  const ports = servers.map((server) => {
    const address = server.address();
    return address !== null && typeof address === "object" ? address.port : 0;
  });
  await Promise.all(servers.map(closed));
  return ports;
}

/** Whether all of them can be listened on. */
export async function areFree(ports: readonly number[]): Promise<boolean> {
  try {
    const servers = await Promise.all(ports.map(async (port) => listening(port)));
    await Promise.all(servers.map(closed));
    return true;
  } catch {
    return false;
  }
}

async function listening(port = 0): Promise<Server> {
  const { promise, resolve, reject } = Promise.withResolvers<Server>();
  const server = createServer();
  server.once("error", reject).listen(port, "127.0.0.1", () => resolve(server));
  return promise;
}

async function closed(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  await promise;
}
