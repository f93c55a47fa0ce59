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
/** What is read at once. All connections share it: whatever is read is looked at in the same step. */
const memory = Buffer.allocUnsafeSlow(256 * 1024);

type Answer = (error?: Error) => void;

/**
 * One connection: a request at a time, and what comes of it. It costs as little as it can, for a server that waits for its client is measured waking up.
 */
export class Connection {
  readonly #socket: Socket;
  /** As an answer begins, byte by byte. */
  readonly #begin: Buffer;
  readonly #isBodiless: boolean;
  #head: Buffer = Buffer.alloc(0);
  /** Bytes of the body that are still to come; undefined: its head is. */
  #left: number | undefined;
  /** The length of the last answer, where it came in one piece: the next one is mostly of the same. */
  #known = -1;
  #answered: Answer | undefined;
  #error: Error | undefined;

  private constructor(target: Target, status: number, onOpen: () => void) {
    const { port, localAddress, servername } = target;
    this.#begin = Buffer.from(`HTTP/1.1 ${status} `);
    // A 304 has no body, whatever its length says.
    this.#isBodiless = status === 304;
    const callback = (bytes: number): boolean => (this.#read(memory.subarray(0, bytes)), true);
    const onread = { buffer: memory, callback };
    const at = {
      port,
      host: "127.0.0.1",
      onread,
      ...(localAddress !== undefined && { localAddress }),
    };
    this.#socket =
      servername === undefined
        ? connectPlain(at, onOpen)
        : connectTls({ ...at, servername, rejectUnauthorized: false }, onOpen);
    this.#socket.setNoDelay(true);
    this.#socket.once("error", (error) => this.#fail(error));
    this.#socket.once("close", () => this.#fail(new Error("the server closed the connection")));
    this.#socket.setTimeout(answerWithinMs, () => this.#fail(new Error("no answer in time")));
  }

  static async open(target: Target, status: number): Promise<Connection> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const connection = new Connection(target, status, resolve);
    connection.#answered = (error) => reject(error);
    await promise;
    connection.#answered = undefined;
    return connection;
  }

  /** Resolves when the whole answer is here. Rejects for another status than the expected one. */
  async ask(request: string | Buffer): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.send(request, (error) => (error === undefined ? resolve() : reject(error)));
    return promise;
  }

  /** Like `ask`; calls `answered` once. */
  send(request: string | Buffer, answered: Answer): void {
    if (this.#error !== undefined) return answered(this.#error);
    this.#answered = answered;
    this.#socket.write(request);
  }

  close(): void {
    this.#socket.removeAllListeners("close").destroy();
  }

  #read(chunk: Buffer): void {
    if (chunk.length === this.#known && this.#left === undefined && this.#head.length === 0) {
      if (chunk.compare(this.#begin, 0, this.#begin.length, 0, this.#begin.length) === 0)
        return this.#tell();
    }
    if (this.#left !== undefined) this.#left -= chunk.length;
    else if (!this.#readHead(chunk)) return;
    if ((this.#left ?? 0) > 0) return;
    this.#left = undefined;
    this.#tell();
  }

  /** Returns whether the head is whole. */
  #readHead(chunk: Buffer): boolean {
    const head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
    const end = head.indexOf(crlf2);
    if (end < 0) {
      this.#head = Buffer.from(head);
      return false;
    }
    this.#head = Buffer.alloc(0);
    const text = head.toString("latin1", 0, end);
    if (!text.startsWith(this.#begin.toString("latin1"))) {
      this.#fail(new Error(`answered ${JSON.stringify(text.slice(0, 400))}`));
      return false;
    }
    const length = this.#isBodiless ? 0 : Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1]);
    if (Number.isNaN(length)) {
      this.#fail(new Error(`an answer without Content-Length: ${text}`));
      return false;
    }
    const whole = end + crlf2.length + length;
    this.#left = whole - head.length;
    this.#known = chunk.length === whole ? whole : -1;
    return true;
  }

  #tell(error?: Error): void {
    const answered = this.#answered;
    this.#answered = undefined;
    answered?.(error);
  }

  #fail(error: Error): void {
    this.#error ??= error;
    this.#tell(error);
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
  const onSame = async (connection: Connection): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const answered: Answer = (error) => {
      if (error !== undefined) return reject(error);
      done++;
      next();
    };
    const next = (): void => {
      if (performance.now() >= untilMs) resolve();
      else connection.send(requests(no++), answered);
    };
    next();
    return promise;
  };
  const onNew = async (connection: Connection): Promise<void> => {
    await connection.ask(requests(no++));
    done++;
  };
  const one = async (): Promise<void> => {
    do {
      const connection = await Connection.open(target, status);
      if (first !== undefined) await connection.ask(first);
      await (isNewEach ? onNew : onSame)(connection);
      connection.close();
    } while (performance.now() < untilMs);
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
