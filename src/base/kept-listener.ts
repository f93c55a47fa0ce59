// A listener that outlives what it serves: a program that is opened anew in its process goes on listening, and says meanwhile that it is.

import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { ListenOptions, Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  closeHttp,
  endBody,
  InFlight,
  listen,
  listenerOptions,
  portOf,
  refuseBroken,
  type Listener,
} from "./http-listener.ts";

export type Served = {
  readonly request: RequestListener;
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
};

/** What is under way at an end has its time first, then hears that it is late, and is cut after the grace. */
export type ServedEnd = {
  /** How long others are still answered at an end that is followed by another beginning. */
  readonly drainMs: number;
  /** How long answers under way have behind that, while whoever comes is told to come again. */
  readonly keptMs: number;
  /** How long answers under way have at the last end. It goes on listening for them, and answers others: a balancer that finds the port closed would cut them. */
  readonly lastMs: () => number;
  readonly graceMs: number;
  /** Called when the time is up or nothing is under way. Must not throw. */
  readonly onLate?: () => void;
};

const restOfBodyMs = 5_000;
const idleSweepMs = 20;

export class KeptListener implements AsyncDisposable {
  readonly #between: Served;
  readonly #sockets = new Set<Socket>();
  #served: Served;
  #server: Server | undefined;
  #isKept = false;

  /** `between` answers while nothing is served. Connections that it answers are to be closed by it. */
  constructor(between: Served) {
    this.#between = between;
    this.#served = between;
  }

  /** The next end of what is served is followed by another beginning: nobody is refused in between. */
  keep(): void {
    this.#isKept = true;
  }

  /** Serves; listens, unless it does already. Port 0 takes a free one. Disposing ends the listening, unless it is kept. Throws PORT_TAKEN or ADDRESS_UNUSABLE. */
  async serve(where: ListenOptions, served: Served, end: ServedEnd): Promise<Listener> {
    const server = this.#server ?? (await this.#listen(where));
    const inFlight = new InFlight();
    this.#isKept = false;
    this.#served = {
      ...served,
      request: (request, response) => {
        inFlight.add(response);
        return served.request(request, response);
      },
    };
    return {
      server,
      port: portOf(server),
      [Symbol.asyncDispose]: async () => {
        const isLast = !this.#isKept;
        await inFlight.drain(isLast ? end.lastMs() : end.drainMs);
        if (!isLast) {
          this.#served = this.#between;
          await inFlight.drain(end.keptMs);
        }
        end.onLate?.();
        await (isLast ? this.#close(end.graceMs) : this.#leave(server, end.graceMs));
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close(0);
  }

  async #listen(where: ListenOptions): Promise<Server> {
    const server = createServer(listenerOptions, (request, response) => {
      response.once("finish", () => endBody(request, restOfBodyMs));
      this.#served.request(request, response);
    });
    server.on("upgrade", (...given) => this.#served.upgrade(...given));
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    refuseBroken(server);
    await listen(server, where);
    this.#server = server;
    return server;
  }

  async #close(graceMs: number): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server !== undefined) await closeHttp(server, graceMs);
  }

  /** Resolves when all connections are gone that are open now; those that are used are cut after the grace. */
  async #leave(server: Server, graceMs: number): Promise<void> {
    const open = [...this.#sockets];
    const idle = setInterval(() => server.closeIdleConnections(), idleSweepMs);
    const cut = setTimeout(() => open.forEach((socket) => socket.destroy()), graceMs);
    await Promise.all(
      open.map(async (socket) => {
        if (socket.closed) return;
        const { promise, resolve } = Promise.withResolvers<void>();
        socket.once("close", () => resolve());
        await promise;
      }),
    );
    clearInterval(idle);
    clearTimeout(cut);
  }
}
