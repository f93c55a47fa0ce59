// Visitors over plain sockets: the least that a client can cost, so that on two cores the server is what is measured. HTTP/1.1 with or without TLS; every answer
// must have a Content-Length and the status that was expected.

import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

export type Target = {
  readonly port: number;
  /** Where connections come from; a trusted proxy has an address of its own. */
  readonly localAddress?: string;
  /** The name to ask for in the handshake; absent: no TLS. */
  readonly servername?: string;
};

/** What the `no`th request says, whole. */
export type Requests = (no: number) => string | Buffer;

export type Answered = {
  readonly requests: number;
  readonly seconds: number;
};

const crlf2 = Buffer.from("\r\n\r\n");
const answerWithinMs = 30_000;

/** One connection: a request at a time, and what comes of it. */
export class Connection {
  readonly #socket: Socket;
  readonly #status: string;
  #head: Buffer = Buffer.alloc(0);
  /** Bytes of the body that are still to come; undefined: its head is. */
  #left: number | undefined;
  #answered: (() => void) | undefined;
  #failed: (error: Error) => void = () => undefined;
  #error: Error | undefined;

  private constructor(socket: Socket, status: number) {
    this.#socket = socket;
    this.#status = `HTTP/1.1 ${status} `;
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.once("error", (error) => this.#fail(error));
    socket.once("close", () => this.#fail(new Error("the server closed the connection")));
    socket.setTimeout(answerWithinMs, () => this.#fail(new Error("no answer in time")));
  }

  static async open(target: Target, status: number): Promise<Connection> {
    const { port, localAddress, servername } = target;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const at = { port, host: "127.0.0.1", ...(localAddress !== undefined && { localAddress }) };
    const socket =
      servername === undefined
        ? connectPlain(at, resolve)
        : connectTls({ ...at, servername, rejectUnauthorized: false }, resolve);
    socket.once("error", reject);
    await promise;
    return new Connection(socket, status);
  }

  /** Resolves when the whole answer is here. Rejects for another status than the expected one. */
  async ask(request: string | Buffer): Promise<void> {
    if (this.#error !== undefined) throw this.#error;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#answered = resolve;
    this.#failed = reject;
    this.#socket.write(request);
    return promise;
  }

  close(): void {
    this.#socket.removeAllListeners("close").destroy();
  }

  #read(chunk: Buffer): void {
    if (this.#left === undefined) {
      const head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
      const end = head.indexOf(crlf2);
      if (end < 0) {
        this.#head = head;
        return;
      }
      this.#head = Buffer.alloc(0);
      const text = head.toString("latin1", 0, end);
      if (!text.startsWith(this.#status)) {
        this.#fail(new Error(`answered ${JSON.stringify(text.slice(0, 400))}`));
        return;
      }
      const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
      // A 304 has no body, whatever its length says.
      this.#left = this.#status.startsWith("HTTP/1.1 304") ? 0 : Number(length);
      if (Number.isNaN(this.#left)) {
        this.#fail(new Error(`an answer without Content-Length: ${text}`));
        return;
      }
      this.#left -= head.length - end - crlf2.length;
    } else this.#left -= chunk.length;
    if (this.#left > 0) return;
    this.#left = undefined;
    this.#answered?.();
  }

  #fail(error: Error): void {
    this.#error ??= error;
    this.#failed(error);
  }
}

export type LoopOptions = {
  readonly target: Target;
  readonly requests: Requests;
  readonly status: number;
  readonly connections: number;
  readonly seconds: number;
  /** Sent first on each connection, and not counted. */
  readonly first?: string;
  /** A new connection for each request. */
  readonly isNewEach?: boolean;
};

/** Asks in a closed loop: each connection sends its next request when the one before was answered. */
export async function askInLoop(options: LoopOptions): Promise<Answered> {
  const { target, requests, status, connections, seconds, first, isNewEach = false } = options;
  const began = performance.now();
  const untilMs = began + seconds * 1_000;
  let [no, done] = [0, 0];
  const one = async (): Promise<void> => {
    let connection = await Connection.open(target, status);
    if (first !== undefined) await connection.ask(first);
    while (performance.now() < untilMs) {
      await connection.ask(requests(no++));
      done++;
      if (!isNewEach) continue;
      connection.close();
      connection = await Connection.open(target, status);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: connections }, one));
  return { requests: done, seconds: (performance.now() - began) / 1_000 };
}

export type PaceOptions = Omit<LoopOptions, "isNewEach"> & { readonly perSecond: number };

/** Asks at fixed times, whether or not what came before was answered; each request takes from its due time to its answer. Returns milliseconds. */
export async function askAtPace(options: PaceOptions): Promise<readonly number[]> {
  const { target, requests, status, connections, seconds, perSecond } = options;
  const idle = await Promise.all(
    Array.from({ length: connections }, async () => Connection.open(target, status)),
  );
  const all = [...idle];
  const tookMs: number[] = [];
  const waiting: number[] = [];
  const total = Math.floor(perSecond * seconds);
  const began = performance.now();
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  const send = async (connection: Connection, first: number): Promise<void> => {
    for (let no: number | undefined = first; no !== undefined; no = waiting.shift()) {
      await connection.ask(requests(no));
      tookMs.push(performance.now() - began - (no * 1_000) / perSecond);
    }
    idle.push(connection);
    if (tookMs.length === total) resolve();
  };
  let sent = 0;
  const timer = setInterval(() => {
    const due = Math.min(total, ((performance.now() - began) * perSecond) / 1_000);
    for (; sent < due; sent++) {
      const connection = idle.pop();
      if (connection === undefined) waiting.push(sent);
      else send(connection, sent).catch(reject);
    }
  }, 1);
  try {
    await done;
  } finally {
    clearInterval(timer);
    for (const connection of all) connection.close();
  }
  return tookMs;
}
