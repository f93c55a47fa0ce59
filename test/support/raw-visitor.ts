// A visitor who writes bytes and reads the answers strictly, on one connection of HTTP/1.1, plain or encrypted.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectSecure, type ConnectionOptions } from "node:tls";
import { AnswerReader, type ReadAnswer } from "./answer-reader.ts";

/** Only bounds a hang. */
const answerMs = 20_000;

export type RawVisit = {
  readonly port: number;
  /** 127.0.0.1 unless told. */
  readonly address?: string;
  /** Of TLS; absent: plain. */
  readonly secure?: ConnectionOptions;
  /** Sent before all else, also before the handshake: a PROXY header. */
  readonly preface?: string;
};

export class RawVisitor implements Disposable {
  readonly #socket: Socket;
  readonly #reader = new AnswerReader();
  #isClosed = false;
  #awake: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => {
      this.#reader.take(text);
      this.#awake?.();
    });
    socket.on("error", () => {}); // Its close tells enough.
    socket.once("close", () => {
      this.#isClosed = true;
      this.#reader.end();
      this.#awake?.();
    });
  }

  static async open({
    port,
    address = "127.0.0.1",
    secure,
    preface = "",
  }: RawVisit): Promise<RawVisitor> {
    const socket = connect({ host: address, port, localAddress: "127.0.0.1", noDelay: true });
    if (preface !== "") socket.write(preface, "latin1");
    if (secure === undefined) {
      await once(socket, "connect");
      return new RawVisitor(socket);
    }
    const encrypted = connectSecure({ ...secure, socket });
    await once(encrypted, "secureConnect");
    return new RawVisitor(encrypted);
  }

  /** Answers so far, interim ones among them. */
  get answers(): readonly ReadAnswer[] {
    return this.#reader.answers;
  }

  get fault(): string | undefined {
    return this.#reader.fault;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The server has said that it answers nothing more here, or has gone. */
  get isOver(): boolean {
    return this.#isClosed || this.answers.some(({ isLast }) => isLast);
  }

  /** Writes one piece of bytes, one character a byte. `methods` are those of the requests that begin in it. */
  write(text: string, methods: readonly string[] = []): void {
    for (const method of methods) this.#reader.expect(method);
    this.#socket.write(text, "latin1");
  }

  /** Resolves when so many final answers have come, or nothing more will. */
  async final(count: number): Promise<void> {
    const isThere = (): boolean =>
      this.#isClosed ||
      this.fault !== undefined ||
      this.answers.reduce((sum, { status }) => sum + (status >= 200 ? 1 : 0), 0) >= count;
    await this.#waitFor(isThere, `${count} answers`);
  }

  async closed(): Promise<void> {
    await this.#waitFor(() => this.#isClosed, "the end of the connection");
  }

  async #waitFor(isThere: () => boolean, what: string): Promise<void> {
    if (isThere()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const late = setTimeout(() => {
      const { owed, answers } = this.#reader;
      reject(new Error(`not within ${answerMs} ms: ${what}; ${answers.length} came, ${owed} owed`));
    }, answerMs);
    this.#awake = () => {
      if (isThere()) resolve();
    };
    try {
      await promise;
    } finally {
      clearTimeout(late);
      this.#awake = undefined;
    }
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}
