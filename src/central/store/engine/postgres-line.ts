// One connection to PostgreSQL for whoever asks one question after the other, with COPY. It is made when it is needed, and
// made again after it ended.
//
// Invariants: a question of a transaction is never asked on another connection than the one that began it. Every wait has
// an end: connecting, a statement and a lock (kept by the server), and an answer that never comes (kept here).

import { Socket } from "node:net";
import pg from "pg";
import type { PostgresPlace } from "./postgres-place.ts";
import { clientConfig, type PostgresLimits } from "./postgres-pool.ts";

export type LineAsk = (text: string, values?: readonly unknown[]) => Promise<readonly unknown[]>;

export type LineOptions = {
  readonly place: PostgresPlace;
  readonly limits: PostgresLimits;
  /** What the server shows beside each connection. */
  readonly name: string;
  /** Further settings of each connection, `name=value`. */
  readonly settings: readonly string[];
  /** Makes a new connection ready. A connection for which it throws is given up. */
  readonly prepare: (ask: LineAsk) => Promise<void>;
  /** A monotonic clock. */
  readonly nowMs: () => number;
};

const connectMs = 5_000;
/**
 * After a connection could not be made, whoever asks is told the same at once, for so long or as long as the attempt took: else
 * each of many questions that wait would wait for an attempt of its own.
 */
const pauseMs = 1_000;
/** How much longer than the server's own limit an answer is waited for. */
const silentBeyondMs = 5_000;

type Connection = { readonly client: pg.Client; readonly socket: Socket; readonly no: number };

export class PostgresLine implements AsyncDisposable {
  readonly #options: LineOptions;
  #connection: Connection | undefined;
  #made = 0;
  #refused: { readonly error: unknown; readonly untilMs: number } | undefined;

  constructor(options: LineOptions) {
    this.#options = options;
  }

  /** Counts the connections that were made. */
  get connections(): number {
    return this.#made;
  }

  /** Asks on connection number `on`, or on any. */
  async query(
    text: string,
    values: readonly unknown[],
    on: number | undefined,
  ): Promise<readonly unknown[]> {
    return this.#run(on, async ({ client }) => rowsOf(await client.query(text, [...values])));
  }

  /** Sends the bytes behind a `COPY … FROM STDIN`. */
  async copy(text: string, bytes: Uint8Array, on: number | undefined): Promise<void> {
    await this.#run(on, async ({ client }) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      client.query(new CopyIn(text, bytes, resolve, reject));
      return promise;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { client } = this.#connection ?? {};
    this.#connection = undefined;
    await client?.end().catch(() => undefined);
  }

  async #run<T>(
    on: number | undefined,
    action: (connection: Connection) => Promise<T>,
  ): Promise<T> {
    const connection = await this.#connected(on);
    return this.#answered(connection.socket, action(connection));
  }

  /** Cuts a connection over which an answer does not come in time, so that the question fails. */
  async #answered<T>(socket: Socket, asked: Promise<T>): Promise<T> {
    const ms = this.#options.limits.statementMs + silentBeyondMs;
    const silent = setTimeout(
      () => socket.destroy(new Error(`PostgreSQL did not answer for ${ms / 1_000} s`)),
      ms,
    );
    try {
      return await asked;
    } finally {
      clearTimeout(silent);
    }
  }

  async #connected(on: number | undefined): Promise<Connection> {
    const known = this.#connection;
    if (known !== undefined && (on === undefined || on === known.no)) return known;
    if (on !== undefined) throw new Error("Connection terminated within a transaction");
    const { nowMs } = this.#options;
    if (this.#refused !== undefined && nowMs() < this.#refused.untilMs) throw this.#refused.error;
    const beganMs = nowMs();
    try {
      const made = await this.#connect();
      this.#refused = undefined;
      this.#connection = made;
      return made;
    } catch (error) {
      const endedMs = nowMs();
      this.#refused = { error, untilMs: endedMs + Math.max(pauseMs, endedMs - beganMs) };
      throw error;
    }
  }

  async #connect(): Promise<Connection> {
    const { place, limits, name, settings, prepare } = this.#options;
    const socket = new Socket();
    const client = new pg.Client({
      ...clientConfig({ place, limits }),
      application_name: name,
      connectionTimeoutMillis: connectMs,
      options: settings.map((setting) => `-c ${setting.replaceAll(" ", "\\ ")}`).join(" "),
      stream: () => socket,
    });
    // Without a listener the end of the connection would end the process. Who asks is told by his question.
    client.on("error", () => undefined);
    client.on("end", () => {
      if (this.#connection?.client === client) this.#connection = undefined;
    });
    try {
      await client.connect();
      await prepare(async (text, values = []) =>
        this.#answered(socket, client.query(text, [...values]).then(rowsOf)),
      );
    } catch (error) {
      socket.destroy();
      await client.end().catch(() => undefined);
      throw error;
    }
    return { client, socket, no: ++this.#made };
  }
}

const rowsOf = ({ rows }: { readonly rows: readonly unknown[] }): readonly unknown[] => rows;

/** What `pg` has of a connection beside what its types tell. */
type CopyConnection = {
  readonly sendCopyFromChunk: (bytes: Buffer) => void;
  readonly endCopyFrom: () => void;
};

/** The most bytes of one message: the server takes a gigabyte, and reads while it writes. */
const chunkBytes = 256 * 2 ** 10;

/** A COPY as a question in the queue of a client, which calls these when the server's messages come. */
class CopyIn implements pg.Submittable {
  readonly #text: string;
  readonly #bytes: Uint8Array;
  readonly #resolve: () => void;
  readonly #reject: (error: unknown) => void;
  #error: unknown;

  constructor(
    text: string,
    bytes: Uint8Array,
    resolve: () => void,
    reject: (error: unknown) => void,
  ) {
    this.#text = text;
    this.#bytes = bytes;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  submit(connection: pg.Connection): void {
    connection.query(this.#text);
  }

  handleCopyInResponse(connection: CopyConnection): void {
    // A view, since what a thread is sent is no Buffer, which the driver wants.
    const bytes = Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength);
    for (let from = 0; from < bytes.byteLength; from += chunkBytes)
      connection.sendCopyFromChunk(bytes.subarray(from, from + chunkBytes));
    connection.endCopyFrom();
  }

  handleError(error: unknown): void {
    this.#error ??= error;
    this.#reject(this.#error);
  }

  handleReadyForQuery(): void {
    if (this.#error === undefined) this.#resolve();
  }

  handleCommandComplete(): void {
    // Whether it holds is known when the server is ready again.
  }
}
