// One visitor's connection of HTTP/1.1 whose requests have been plain so far. What can be answered at once is, one write for all that one read brought. What cannot
// runs the ordinary pipeline on this connection, one request at a time, while what follows it waits. A request that is not plain goes to node:http with every
// byte that was not read, and the connection with it, for good.

import type { Carrier } from "../doors/carrier.ts";
import { stallMs } from "../doors/answer.ts";
import { visitorGone, type Connection, type Exchange } from "../doors/exchange.ts";
import { isLastAnswer, staysOpen } from "../doors/head-text.ts";
import type { WorkerClock } from "../clock.ts";
import type { Recorder } from "../records/recorder.ts";
import { odd, scanHead, type PlainFields, type PlainHead } from "./head-scanner.ts";
import { LaneCarrier } from "./lane-carrier.ts";
import type { QuickAnswer, QuickAnswers, QuickPass } from "./quick-answers.ts";
import { answersATurn } from "./turns.ts";

export type LaneDeps = {
  readonly quick: Pick<QuickAnswers, "answer">;
  readonly recorder: Pick<Recorder, "quick">;
  readonly clock: WorkerClock;
  /** Opens an exchange; `onEnd` is told when it has ended. */
  readonly open: (carrier: Carrier, connection: Connection, onEnd: () => void) => Exchange;
  readonly pass: (exchange: Exchange, passed: QuickPass) => void;
  /** Serves a connection as node:http does, from its next byte on. The socket does not flow. */
  readonly handOver: (connection: Connection) => void;
  /** Calls `takeTurn` when it is this connection's turn again. */
  readonly wait: (lane: LaneConnection) => void;
  readonly isDraining: () => boolean;
  /** False: whatever comes is left to node:http. */
  readonly usesLane: () => boolean;
};

/** The most bytes that wait behind a request that is being answered. */
const waitingBytesMax = 64 * 1024;
/** So much is gathered for one write, and one answer more: only what is written tells whether the visitor takes it. */
const gatheredMax = 64 * 1024;
/** Longer fields are not kept for the next head. */
const knownBytesMax = 2 * 1024;
const nothing = Buffer.alloc(0);

/** An answer that was written, or is about to be. */
type Written = { readonly answer: QuickAnswer; readonly bytes: number };

/** `head`: one has begun and is not complete. `unused`: no byte has come. `busy`: there is nothing to wait for but others. */
export type LaneState = "unused" | "head" | "idle" | "busy";

export class LaneConnection {
  readonly connection: Connection;
  /** When the present state began, by the steady clock; a worker looks once a second. */
  sinceMs: number;
  readonly #deps: LaneDeps;
  /** What has come and is not answered yet. */
  #unread: Buffer = nothing;
  /** What is gathered for one write. */
  #text = "";
  #gathered: Written[] = [];
  /** Written, and not yet taken by the kernel. */
  readonly #leaving: Written[] = [];
  /** The fields of the last head; none while nothing is asked for some time. */
  #known: PlainFields | undefined;
  #exchange: Exchange | undefined;
  /** Nothing more of this connection is answered here. */
  #isOver = false;
  #hasAnswered = false;
  /** How many requests may be answered until others have their turn. */
  #leftOfTurn = answersATurn;
  #waitsForTurn = false;
  /** The visitor sends nothing more; what has come is answered first. */
  #endsBehindTurn = false;
  readonly #onData = (chunk: Buffer): void => this.#take(chunk);
  readonly #onDrain = (): void => this.#drained();
  readonly #onEnd = (): void => this.#ended();
  readonly #onTimeout = (): void => void this.connection.socket.destroy();

  constructor(connection: Connection, deps: LaneDeps) {
    this.connection = connection;
    this.#deps = deps;
    this.sinceMs = deps.clock.steadyMs();
    const { socket } = connection;
    socket.on("drain", this.#onDrain).on("end", this.#onEnd).on("timeout", this.#onTimeout);
    socket.on("data", this.#onData);
  }

  get state(): LaneState {
    if (this.#isOver || this.#exchange !== undefined || this.#leaving.length > 0) return "busy";
    if (this.#waitsForTurn) return "busy";
    if (this.#unread.length > 0) return "head";
    return this.#hasAnswered ? "idle" : "unused";
  }

  /** Whether the kernel has all that was answered. */
  get hasLeft(): boolean {
    return this.#leaving.length === 0;
  }

  /** Gives back what is only kept to answer the next request sooner. */
  rest(): void {
    this.#known = undefined;
  }

  /** What has come of a head that is not complete. */
  get unread(): Buffer {
    return this.#unread;
  }

  /** The connection has closed: what has not left has not arrived. */
  closed(): void {
    this.#isOver = true;
    for (const written of this.#leaving.splice(0)) this.#record(written, visitorGone);
  }

  /** Answers what has come, as far as it may now. */
  takeTurn(): void {
    this.#waitsForTurn = false;
    this.#leftOfTurn = answersATurn;
    if (!this.#isOver) this.#goOn();
  }

  #take(chunk: Buffer): void {
    if (!this.#waitsForTurn) this.#leftOfTurn = answersATurn;
    if (this.#unread.length > 0) this.#unread = Buffer.concat([this.#unread, chunk]);
    else {
      this.#unread = chunk;
      this.sinceMs = this.#deps.clock.steadyMs();
    }
    this.#turn();
    if (this.#isWaiting && this.#unread.length > waitingBytesMax) this.connection.socket.pause();
  }

  /** Whether what comes has to wait: for an answer that is made, for one that leaves, or for its turn. */
  get #isWaiting(): boolean {
    if (this.#exchange !== undefined || this.#waitsForTurn) return true;
    return this.connection.socket.writableNeedDrain;
  }

  /** Answers what has come, as far as it can be answered now. */
  #turn(): void {
    let at = 0;
    const bytes = this.#unread;
    while (at < bytes.length && !this.#isOver && !this.#isWaiting) {
      const scan = this.#deps.usesLane() ? scanHead(bytes, at, this.#known) : odd;
      if (scan.kind === "more") break;
      if (scan.kind === "odd") {
        this.#handOver(bytes.subarray(at));
        return;
      }
      if (this.#leftOfTurn === 0) {
        this.#waitsForTurn = true;
        this.#deps.wait(this);
        break;
      }
      this.#leftOfTurn--;
      at = scan.end;
      this.#known = scan.said.text.length <= knownBytesMax ? scan.said : undefined;
      this.#answer(scan);
    }
    this.#flush();
    if (at === 0) return;
    this.#unread = this.#isOver || at === bytes.length ? nothing : bytes.subarray(at);
    this.sinceMs = this.#deps.clock.steadyMs();
  }

  #answer(head: PlainHead): void {
    const found = this.#deps.quick.answer(head, this.connection);
    if (found.kind === "pass") this.#pass(head, found);
    else this.#gather(found);
  }

  #gather(answer: QuickAnswer): void {
    const isLast = answer.asked.request.said.isLast || this.#deps.isDraining();
    this.#hasAnswered = true;
    const { head, body, whole } = answer;
    if (whole !== undefined && !isLast) this.#gatherText(answer, whole);
    else {
      const text = `${head}${isLast ? isLastAnswer : staysOpen}\r\n`;
      if (typeof body === "string") this.#gatherText(answer, text + body);
      else {
        this.#text += text;
        this.#gathered.push({ answer, bytes: text.length + body.length });
        this.#flush(body);
      }
    }
    if (isLast) this.#finish();
  }

  #gatherText(answer: QuickAnswer, text: string): void {
    this.#gathered.push({ answer, bytes: text.length });
    this.#text += text;
    if (this.#text.length >= gatheredMax) this.#flush();
  }

  /** Writes what was gathered, and a body behind it. */
  #flush(body?: Uint8Array): void {
    const { socket } = this.connection;
    const gathered = this.#gathered;
    if (gathered.length === 0) return;
    this.#gathered = [];
    const text = this.#text;
    this.#text = "";
    this.connection.tellBytesSent(text.length + (body?.length ?? 0));
    this.#leaving.push(...gathered);
    if (body === undefined) socket.write(text, "latin1", this.#onWritten(gathered.length));
    else {
      socket.cork();
      socket.write(text, "latin1");
      socket.write(body, this.#onWritten(gathered.length));
      socket.uncork();
    }
    if (socket.writableNeedDrain) socket.setTimeout(stallMs);
  }

  #onWritten(count: number): (error?: Error | null) => void {
    return (error) => {
      // Node tells a write that was under way when its socket was destroyed as one that succeeded.
      const isCut = Boolean(error) || this.connection.socket.destroyed;
      for (const written of this.#leaving.splice(0, count))
        this.#record(written, isCut ? visitorGone : written.answer.status);
    };
  }

  #record({ answer, bytes }: Written, status: number): void {
    const { asked, cache } = answer;
    this.#deps.recorder.quick(asked, { status, cache, bytesSent: bytes });
  }

  #pass(head: PlainHead, passed: QuickPass): void {
    this.#flush();
    const { connection } = this;
    const carrier = new LaneCarrier(head, connection, this.#deps.clock.wallMs);
    if (this.#deps.isDraining()) carrier.endConnection();
    const exchange = this.#deps.open(carrier, connection, () => this.#exchangeEnded(carrier));
    this.#exchange = exchange;
    this.#hasAnswered = true;
    this.#deps.pass(exchange, passed);
  }

  #exchangeEnded(carrier: LaneCarrier): void {
    this.#exchange = undefined;
    this.sinceMs = this.#deps.clock.steadyMs();
    if (this.#isOver) return;
    if (carrier.isLast) this.#finish();
    else this.#goOn();
  }

  #drained(): void {
    if (this.#exchange !== undefined || this.#isOver) return;
    this.connection.socket.setTimeout(0);
    this.#goOn();
  }

  #goOn(): void {
    this.#turn();
    const { socket } = this.connection;
    if (this.#isOver || this.#isWaiting) return;
    if (this.#endsBehindTurn) socket.end();
    else if (socket.isPaused()) socket.resume();
  }

  /** The visitor sends nothing more: as with node:http, nothing more is answered that is not on its way. */
  #ended(): void {
    if (this.#waitsForTurn) this.#endsBehindTurn = true;
    else this.connection.socket.end();
  }

  /** After its last answer. What still comes is thrown away. */
  #finish(): void {
    this.#flush();
    this.#isOver = true;
    const { socket } = this.connection;
    socket.off("data", this.#onData);
    socket.resume();
    socket.destroySoon();
  }

  /** Leaves the connection to somebody else. */
  leave(): void {
    this.#isOver = true;
    const { socket } = this.connection;
    socket.off("data", this.#onData).off("drain", this.#onDrain).off("end", this.#onEnd);
    socket.off("timeout", this.#onTimeout);
    this.#unread = nothing;
  }

  #handOver(rest: Buffer): void {
    this.#flush();
    this.leave();
    const { socket } = this.connection;
    socket.pause();
    socket.unshift(rest);
    this.#deps.handOver(this.connection);
    socket.resume();
  }
}
