// A way to the socket of a server in a directory of its own, which can be cut for whoever takes it, and mended; or go silent: nothing passes any more, and both ends keep their
// connections.

import { mkdirSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";

export class SocketRelay implements AsyncDisposable {
  readonly directory: string;
  readonly #path: string;
  readonly #target: string;
  readonly #open = new Set<Socket>();
  #server: Server | undefined;
  /** What waits while it is silent; undefined: all passes. */
  #held: (() => void)[] | undefined;
  #awaited: { readonly word: string; readonly met: () => void } | undefined;

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
      this.#join(socket, far, true);
      this.#join(far, socket, false);
    });
    this.#server = server;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once("error", reject);
    server.listen(this.#path, resolve);
    await promise;
  }

  /** Nothing passes any more, in either direction, until it speaks; not even that a connection ended. */
  silence(): void {
    this.#held ??= [];
  }

  /** It goes silent when a client sends something with the word in it, which does not pass either. Resolves then. */
  async silenceAt(word: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#awaited = { word, met: resolve };
    await promise;
  }

  /** What waited passes, and all that comes. */
  speak(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const pass of held) pass();
  }

  /** Ends all connections, and refuses others. */
  async cut(): Promise<void> {
    this.#held = undefined;
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

  #join(from: Socket, to: Socket, isClient: boolean): void {
    this.#open.add(from);
    from.on("error", () => undefined);
    from.on("close", () => {
      this.#open.delete(from);
      this.#pass(() => to.destroy());
    });
    from.on("data", (bytes: Buffer) => {
      if (isClient && this.#awaited !== undefined && bytes.includes(this.#awaited.word)) {
        this.silence();
        this.#awaited.met();
        this.#awaited = undefined;
      }
      this.#pass(() => to.write(bytes));
    });
  }

  #pass(what: () => void): void {
    if (this.#held === undefined) what();
    else this.#held.push(what);
  }
}
