// A line between agent and central that can be cut, or go dead while both ends believe that it is open. Bytes only; what they mean is for others.

import { createServer, connect, type AddressInfo, type Socket } from "node:net";

export type LineState = "open" | "cut" | "dead";

export class Line implements AsyncDisposable {
  readonly #server = createServer((socket) => this.#accept(socket));
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  #state: LineState = "open";

  private constructor(port: number) {
    this.#port = port;
  }

  /** To a port of this host. */
  static async open(port: number): Promise<Line> {
    const line = new Line(port);
    const { promise, resolve } = Promise.withResolvers<void>();
    line.#server.listen(0, "127.0.0.1", resolve);
    await promise;
    return line;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port; // Listening on TCP.
  }

  /** Cut: connections are reset, new ones too. Dead: they stay and carry nothing; when it ends they are reset. */
  set state(state: LineState) {
    const before = this.#state;
    this.#state = state;
    if (state === "cut" || before === "dead")
      for (const socket of this.#sockets) socket.resetAndDestroy();
    if (state === "dead") for (const socket of this.#sockets) socket.unpipe().pause();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = Promise.withResolvers<void>();
    this.#server.close(() => closed.resolve());
    for (const socket of this.#sockets) socket.destroy();
    await closed.promise;
  }

  #accept(near: Socket): void {
    this.#keep(near);
    if (this.#state === "cut") near.resetAndDestroy();
    if (this.#state !== "open") return;
    const far = connect(this.#port, "127.0.0.1");
    this.#keep(far);
    near.pipe(far).pipe(near);
    near.once("close", () => far.destroy());
    far.once("close", () => near.destroy());
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => this.#sockets.delete(socket));
  }
}
