// WebSockets that stay open and talk, as a chat does: each says something ten times a second and hears it again. Counted is how each one ended.

import { once } from "node:events";
import { WebSocket } from "ws";
import { browser } from "./edge.ts";

const everyMs = 100;

export class OpenWebSockets {
  readonly #sockets: WebSocket[] = [];
  readonly #ended = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;

  private constructor() {
    this.#timer = setInterval(() => this.#talk(), everyMs);
  }

  /** Resolves when all of them are open. Throws where one is refused. */
  static async open(url: string, name: string, count: number): Promise<OpenWebSockets> {
    const all = new OpenWebSockets();
    await Promise.all(Array.from({ length: count }, async () => all.#open(url, name)));
    return all;
  }

  /** How they ended, and how many: by the code of the Close frame, 1006 where there was none, or by an error. Those that are open still end now, and are not counted. */
  end(): Readonly<Record<string, number>> {
    clearInterval(this.#timer);
    const ended = Object.fromEntries(this.#ended);
    for (const socket of this.#sockets) socket.terminate();
    return ended;
  }

  async #open(url: string, name: string): Promise<void> {
    const socket = new WebSocket(url, {
      headers: { host: name, "user-agent": browser },
      perMessageDeflate: false,
    });
    this.#sockets.push(socket);
    await once(socket, "open");
    let how: string | undefined;
    socket.on("error", (error: Error & { code?: string }) => (how = error.code ?? error.message));
    socket.once("close", (code) => {
      how ??= `${code}`;
      this.#ended.set(how, (this.#ended.get(how) ?? 0) + 1);
    });
  }

  #talk(): void {
    for (const socket of this.#sockets)
      if (socket.readyState === WebSocket.OPEN) socket.send("still there?");
  }
}
