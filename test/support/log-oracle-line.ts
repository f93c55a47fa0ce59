// A line between agent and central that can be cut, go dead while both ends believe that it is open, or end at something that answers 400 to whatever
// comes, as a load balancer does that cannot read it. Bytes only; what they mean is for others.

import { createServer, connect, type AddressInfo, type Socket } from "node:net";

export type LineState = "open" | "cut" | "dead" | "answers 400";

/** As HAProxy and nginx have it: no JSON, and the connection is over. */
const bad =
  "<html><body><h1>400 Bad request</h1>\nYour browser sent an invalid request.</body></html>\n";
const badAnswer = `HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: ${bad.length}\r\nConnection: close\r\n\r\n${bad}`;

export class Line implements AsyncDisposable {
  readonly #server = createServer((socket) => this.#accept(socket));
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  /** Requests that were answered 400. */
  refused = 0;
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

  /**
   * Cut: connections are reset, new ones too. Dead: they stay and carry nothing; when it ends they are reset. Answers 400: what is open is reset, on new
   * ones the first bytes are answered.
   */
  set state(state: LineState) {
    const before = this.#state;
    this.#state = state;
    if (state === "cut" || state === "answers 400" || before === "dead")
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
    if (this.#state === "answers 400") {
      near.once("data", () => {
        this.refused++;
        near.end(badAnswer);
        near.resume();
      });
    }
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
