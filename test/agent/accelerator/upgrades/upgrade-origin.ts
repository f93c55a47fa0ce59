// An origin that is asked for upgrades.

import { once } from "node:events";
import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";

export type Upgraded = (request: IncomingMessage, socket: Duplex, early: Buffer) => void;

export class UpgradeOrigin implements AsyncDisposable {
  readonly asked: IncomingMessage[] = [];
  readonly sockets = new Set<Duplex>();
  readonly #server: Server;

  constructor(server: Server, upgraded: Upgraded) {
    this.#server = server;
    server.on("connection", (socket: Socket) => {
      this.sockets.add(socket);
      socket.once("close", () => this.sockets.delete(socket));
    });
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, early: Buffer) => {
      this.asked.push(request);
      socket.on("error", () => {});
      upgraded(request, socket, early);
    });
    server.on("request", (request: IncomingMessage, response) => {
      this.asked.push(request);
      response.end("plain");
    });
  }

  async listen(): Promise<number> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const socket of this.sockets) socket.destroy();
    await Promise.resolve();
  }
}

export const echoes: Upgraded = (request, socket, early) => {
  const server = new WebSocketServer({ noServer: true });
  server.handleUpgrade(request, socket, early, (channel) => {
    channel.on("error", () => {});
    channel.on("message", (bytes, isBinary) => channel.send(bytes, { binary: isBinary }));
  });
};
