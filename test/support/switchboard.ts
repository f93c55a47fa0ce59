// A TCP address that leads to another one, and can lead elsewhere from now on: what a load balancer or a moved address is for whoever connects.

import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

export class Switchboard implements AsyncDisposable {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #target: number;

  private constructor(server: Server, port: number, target: number) {
    this.#server = server;
    this.port = port;
    this.#target = target;
    server.on("connection", (socket) => this.#lead(socket));
  }

  /** Leads to a port of this host. */
  static async start(target: number): Promise<Switchboard> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new TypeError("no port");
    return new Switchboard(server, address.port, target);
  }

  /** New connections lead there; those that are open stay where they are. */
  switchTo(target: number): void {
    this.#target = target;
  }

  /** Ends what is open. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.cut();
    await closed;
  }

  #lead(from: Socket): void {
    const to = connect(this.#target, "127.0.0.1");
    const ends: readonly (readonly [Socket, Socket])[] = [
      [from, to],
      [to, from],
    ];
    for (const [one, other] of ends) {
      this.#sockets.add(one);
      one.on("error", () => undefined); // Its end, which follows, ends the other.
      one.on("close", () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }
}
