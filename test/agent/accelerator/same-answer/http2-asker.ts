// A visitor by HTTP/2 who keeps the heads of answers as they came, in order.

import { visitByHttp2, type Http2Visitor } from "../secure-clients.ts";
import type { ReadAnswer } from "../../../support/answer-reader.ts";
import type { AskedOf } from "./requests.ts";

/** HTTP/2 has none of these. */
const ofConnections: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "keep-alive",
  "proxy-connection",
  "te",
  "upgrade",
  "x-latin",
]);

export class Http2Asker implements Disposable {
  readonly answers: ReadAnswer[] = [];
  readonly fault: string | undefined;
  readonly #visitor: Http2Visitor;

  private constructor(visitor: Http2Visitor) {
    this.#visitor = visitor;
  }

  static async open(port: number, address: string): Promise<Http2Asker> {
    return new Http2Asker(await visitByHttp2(port, { host: address, localAddress: "127.0.0.1" }));
  }

  get isOver(): boolean {
    const { session } = this.#visitor;
    return session.closed || session.destroyed;
  }

  /** Resolves when its stream has closed. */
  async ask({ method, target, fields, body }: AskedOf): Promise<void> {
    const head: Record<string, string> = { ":method": method, ":path": target };
    for (const [spelled, value] of fields) {
      const name = spelled.toLowerCase() === "host" ? ":authority" : spelled.toLowerCase();
      if (ofConnections.has(name)) continue;
      head[name] = value; // Node's client sends no second one of most.
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    const stream = this.#visitor.begin(head, body === "");
    const chunks: Buffer[] = [];
    let raw: readonly string[] = [];
    // Node's types do not know the third.
    stream.once("response", (...told: unknown[]) => (raw = told[2] as readonly string[]));
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.once("close", resolve);
    if (body !== "") stream.end(body, "latin1");
    await promise;
    const lines = raw.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`));
    this.answers.push({
      status: Number(raw[1] ?? 999),
      head: `${lines.join("")}rst: ${stream.rstCode}\r\n`,
      body: Buffer.concat(chunks).toString("latin1"),
      isLast: false,
    });
  }

  [Symbol.dispose](): void {
    this.#visitor.session.destroy();
  }
}
