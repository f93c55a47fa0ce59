// What the listeners of a worker ask of Node's servers in ways of their own: a port, the end of listening, and a connection that was accepted elsewhere.

import { Server as NetServer, Socket } from "node:net";
import { listen, type ListenPlace } from "../../../base/http-listener.ts";

/** `allowHalfOpen`: as node:http has its connections, and node:tls has not. */
export function admitLate(server: NetServer, fd: number, allowHalfOpen: boolean): void {
  const socket = new Socket({ fd, allowHalfOpen, readable: true, writable: true });
  socket.setNoDelay(true);
  server.emit("connection", socket);
}

/** Returns the port. */
export async function listenOn(server: NetServer, where: ListenPlace): Promise<number> {
  await listen(server, where);
  const address = server.address();
  return address !== null && typeof address === "object" ? address.port : 0;
}

/** Takes no further connection. Resolves when the last one has ended. */
export async function closeListening(server: NetServer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  NetServer.prototype.close.call(server, () => resolve());
  return promise;
}
