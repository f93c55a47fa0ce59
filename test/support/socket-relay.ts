// A way to the socket of a server in a directory of its own, which can be cut for whoever takes it, and mended.

import { mkdirSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";

export class SocketRelay implements AsyncDisposable {
  readonly directory: string;
  readonly #path: string;
  readonly #target: string;
  readonly #open = new Set<Socket>();
  #server: Server | undefined;

  private constructor(directory: string, path: string, target: string) {
    this.directory = directory;
    this.#path = path;
    this.#target = target;
  }

  /** Leads from `directory`, which it makes, to the socket of that name in `from`. */
  static async open(directory: string, from: string, name: string): Promise<SocketRelay> {
    mkdirSync(directory);
    const relay = new SocketRelay(directory, join(directory, name), join(from, name));
    await relay.mend();
    return relay;
  }

  async mend(): Promise<void> {
    const server = createServer((socket) => {
      const far = connect(this.#target);
      for (const [one, other] of [
        [socket, far],
        [far, socket],
      ] as const) {
        this.#open.add(one);
        one.on("error", () => undefined);
        one.on("close", () => {
          this.#open.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
    });
    this.#server = server;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject);
    server.listen(this.#path, resolve);
    await promise;
  }

  /** Ends all connections, and refuses others. */
  async cut(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    server.close(() => resolve());
    for (const socket of this.#open) socket.destroy();
    await promise;
    rmSync(this.#path, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cut();
  }
}
