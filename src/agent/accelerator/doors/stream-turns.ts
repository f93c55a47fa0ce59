// Whose turn it is among the streams of HTTP/2. One read tells all requests that it brought, and a connection may have 128 of them under way: so a few begin in the step in which
// they are told, and the others wait here, a few of each connection at a time, while everybody else has his turn.
//
// While requests of a connection wait, nothing more is read from it: what its visitor sends waits with him.

import type { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { LaneTurns } from "../lane/turns.ts";

/** So many requests of a connection begin in the step in which they are told, until it rests or has a turn: a page and what it names first, and a millisecond at most. */
export const beginsAtOnce = 16;
/** So many do while others wait for their turn: many connections at once would otherwise hold everybody up with 16 each. */
export const beginsInACrowd = 4;
/** So many of those that wait begin in a turn of their connection: half a millisecond. Four connections have their turn before the loop looks for what has come. */
export const beginsATurn = 8;

/** What is asked of a stream that waits. */
export type WaitingStream = Pick<Duplex, "closed" | "destroyed"> &
  Pick<EventEmitter, "on" | "once">;

export type StreamTurnsDeps<Stream> = {
  readonly turns: Pick<LaneTurns, "wait" | "areAwaited">;
  readonly reads: Pick<SessionReads, "stop" | "start">;
  readonly begin: (stream: Stream, raw: readonly string[]) => void;
  /** The visitor has taken back a request that waited. */
  readonly onReset: () => void;
  /** None waits any more. */
  readonly onNone: () => void;
};

/** Its close tells enough. */
const ignore = (): void => {};

/** The streams of one connection. */
export class StreamTurns<Stream extends WaitingStream> {
  readonly #deps: StreamTurnsDeps<Stream>;
  /** With their headers, in the order in which they were told. */
  readonly #waiting = new Map<Stream, readonly string[]>();
  /** So many have begun in the step in which they were told, since the connection rested or had a turn. */
  #begun = 0;

  constructor(deps: StreamTurnsDeps<Stream>) {
    this.#deps = deps;
  }

  /** Whether no stream waits. */
  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** Begins a stream that was told, now or when it is its turn. One that is taken back first never begins. */
  take(stream: Stream, raw: readonly string[]): void {
    if (this.#begun >= (this.#deps.turns.areAwaited ? beginsInACrowd : beginsAtOnce)) {
      this.#wait(stream, raw);
      return;
    }
    this.#begun++;
    this.#deps.begin(stream, raw);
  }

  /** To be told when the connection is left without a stream. */
  rested(): void {
    this.#begun = 0;
  }

  takeTurn(): void {
    let left = beginsATurn;
    for (const [stream, raw] of this.#waiting) {
      if (left-- === 0) break;
      this.#waiting.delete(stream);
      this.#deps.begin(stream, raw);
    }
    if (this.isEmpty) this.#none();
    else this.#deps.turns.wait(this);
  }

  /** Forgets those that wait, and returns them. */
  clear(): readonly Stream[] {
    const waiting = [...this.#waiting.keys()];
    this.#waiting.clear();
    return waiting;
  }

  #wait(stream: Stream, raw: readonly string[]): void {
    if (stream.closed || stream.destroyed) {
      this.#deps.begin(stream, raw); // There is nothing to begin.
      return;
    }
    if (this.isEmpty) {
      this.#deps.reads.stop();
      this.#deps.turns.wait(this);
    }
    this.#waiting.set(stream, raw);
    const gone = (): void => {
      if (this.#waiting.delete(stream)) this.#deps.onReset();
    };
    stream.on("error", ignore).once("aborted", gone).once("close", gone);
  }

  #none(): void {
    this.#begun = 0;
    this.#deps.reads.start();
    this.#deps.onNone();
  }
}

type InnerSocket = Socket & {
  readonly _handle?: { readonly readStop?: () => void; readonly readStart?: () => void } | null;
};

/**
 * The reads of a session, which Node takes from the handle of its socket without asking the socket. Where this Node
 * has no such handle, its visitors are read without a pause.
 */
export class SessionReads {
  readonly #socket: InnerSocket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  stop(): void {
    if (!this.#socket.destroyed) this.#socket._handle?.readStop?.();
  }

  start(): void {
    if (!this.#socket.destroyed) this.#socket._handle?.readStart?.();
  }
}
