// Visitors of a cache under comparison: they read the number that the origin put into each answer.

import { Client, Pool } from "undici";
import type { RunningPeer } from "./peer.ts";

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const answerWithinMs = 30_000;

export class Visitor implements AsyncDisposable {
  readonly #to: Pool | Client;
  readonly #headers: Readonly<Record<string, string>>;

  private constructor(to: Pool | Client, { host }: RunningPeer) {
    this.#to = to;
    this.#headers = { "user-agent": browser, ...(host === undefined ? {} : { host }) };
  }

  /** Over one connection with `connections` 1, so that at several workers it stays with one. */
  static open(peer: RunningPeer, connections: number): Visitor {
    const timeouts = { headersTimeout: answerWithinMs, bodyTimeout: answerWithinMs };
    return new Visitor(
      connections === 1
        ? new Client(peer.url, timeouts)
        : new Pool(peer.url, { ...timeouts, connections, pipelining: 1 }),
      peer,
    );
  }

  /** The number of the answer; throws for anything that is none of the origin's. */
  async visit(path: string): Promise<number> {
    const { statusCode, body } = await this.#to.request({
      path,
      method: "GET",
      headers: this.#headers,
    });
    const text = await body.text();
    const [, number] = /^#(\d+) /.exec(text) ?? [];
    if (statusCode !== 200 || number === undefined)
      throw new Error(`${path} was answered ${statusCode}: ${text.slice(0, 200)}`);
    return Number(number);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#to.destroy();
  }
}
