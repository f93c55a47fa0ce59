// One visitor's connection of HTTP/1.1 whose requests have been plain so far. What can be answered at once is, one write for all that one read brought. What cannot
// runs the ordinary pipeline on this connection, one request at a time, while what follows it waits. A request that is not plain goes to node:http with every
// byte that was not read (lent-socket.ts). When it has been answered, and nothing of another one was read with it, the lane goes on.

import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Carrier } from "../doors/carrier.ts";
import { stallMs } from "../doors/answer.ts";
import { visitorGone, type Connection, type Exchange } from "../doors/exchange.ts";
import { isLastAnswer, staysOpen } from "../doors/head-text.ts";
import type { WorkerClock } from "../clock.ts";
import type { Recorder } from "../records/recorder.ts";
import { kept, SharedReads } from "../shared-reads.ts";
import { odd, scanHead, type PlainFields, type PlainHead, type PurgeHead } from "./head-scanner.ts";
import { LaneCarrier } from "./lane-carrier.ts";
import type { QuickAnswer } from "./quick-answer.ts";
import type { QuickAnswers, QuickPass } from "./quick-answers.ts";
import { LentSocket } from "./lent-socket.ts";
import type { RecentFields } from "./recent-fields.ts";
import { answersATurn, answersInACrowd, lentWeight, type LaneTurns } from "./turns.ts";

export type LaneDeps = {
  readonly quick: Pick<QuickAnswers, "answer">;
  readonly recorder: Pick<Recorder, "quick">;
  readonly clock: WorkerClock;
  /** Opens an exchange; `onEnd` is told when it has ended. */
  readonly open: (carrier: Carrier, connection: Connection, onEnd: () => void) => Exchange;
  readonly pass: (exchange: Exchange, passed: QuickPass) => void;
  /** Serves what is lent as node:http does. */
  readonly lend: (lent: LentSocket) => void;
  readonly recent: RecentFields;
  readonly turns: Pick<LaneTurns, "wait" | "areAwaited">;
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
/** node:http begins no further request while it has so many, and is given so much at a time: 27 bytes are a request. */
const lentAtATime = 16;
const lentPieceBytes = 768;
const headEnd = "\r\n\r\n";
const lineFeed = 10;
const nothing = Buffer.alloc(0);
/** Nothing was asked for a purge request yet. */
const hasToWait: QuickPass = { kind: "pass", admission: "has-to-wait", judged: undefined };

/** Returns whether the kernel took at once all that was written. */
function hasAll(socket: Socket): boolean {
  return socket.writableLength === 0 && !socket.destroyed;
}

/** An answer that was written, or is about to be. */
type Written = { readonly answer: QuickAnswer; readonly bytes: number };

/** `head`: one has begun and is not complete. `unused`: no byte has come. `busy`: there is nothing to wait for but others. */
export type LaneState = "unused" | "head" | "idle" | "busy";

export class LaneConnection {
  readonly connection: Connection;
  /** When the present state began, by the steady clock; a worker looks once a second. */
  sinceMs: number;
  readonly #deps: LaneDeps;
  /** Whether a write may be done at once; one over TLS never is. */
  readonly #isPlain: boolean;
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
  /** Made for the first request that is not plain. */
  #lent: LentSocket | undefined;
  /** Whether what comes is node's. */
  #isLent = false;
  /** Nothing more of this connection is answered here. */
  #isOver = false;
  #hasAnswered = false;
  /** How many requests may be answered until others have their turn. */
  #leftOfTurn = answersATurn;
  /** The visitor sends nothing more; what has come is answered first. */
  #endsBehindTurn = false;
  #reads: SharedReads | undefined;
  readonly #onData = (chunk: Buffer): void => this.#takeData(chunk);
  readonly #onDrain = (): void => this.#drained();
  readonly #onEnd = (): void => this.#ended();
  readonly #onTimeout = (): void => void this.connection.socket.destroy();

  constructor(connection: Connection, deps: LaneDeps) {
    this.connection = connection;
    this.#deps = deps;
    this.#known = deps.recent.of(connection.peer);
    this.sinceMs = deps.clock.steadyMs();
    const { socket } = connection;
    this.#isPlain = !(socket instanceof TLSSocket);
    socket.on("drain", this.#onDrain).on("end", this.#onEnd).on("timeout", this.#onTimeout);
    socket.on("data", this.#onData);
  }

  get state(): LaneState {
    if (this.#isOver || this.#exchange !== undefined || this.#leaving.length > 0) return "busy";
    if (this.connection.waitsForTurn) return "busy";
    // The time that a head may take on a connection that is lent is node's to look after.
    if (this.#isLent) return this.connection.live.size > 0 ? "busy" : "idle";
    if (this.#unread.length > 0) return "head";
    return this.#hasAnswered ? "idle" : "unused";
  }

  /** Gives back what is only kept to answer the next request sooner. */
  rest(): void {
    this.#known = undefined;
    if (this.#isLent) return;
    this.#lent?.part();
    this.#lent = undefined;
  }

  /** What has come of a head that is not complete. */
  get unread(): Buffer {
    return this.#unread;
  }

  /** The connection has closed: what has not left has not arrived. */
  closed(): void {
    this.#isOver = true;
    for (const written of this.#leaving.splice(0)) this.#record(written, visitorGone);
    this.#lent?.destroy();
  }

  /** Answers what has come, as far as it may now. */
  takeTurn(): void {
    this.connection.waitsForTurn = false;
    this.#leftOfTurn = answersATurn;
    if (this.#isOver) return;
    if (this.#isLent) this.#lend();
    else this.#goOn();
  }

  #takeData(chunk: Buffer): void {
    // One request may be all that comes: only then it is worth it.
    if (this.#hasAnswered)
      this.#reads ??= SharedReads.of(this.connection.socket, (bytes) => this.#take(bytes));
    this.#take(chunk);
  }

  #take(chunk: Buffer): void {
    if (this.#isOver || this.connection.hasParted) return;
    if (!this.connection.waitsForTurn)
      this.#leftOfTurn = this.#deps.turns.areAwaited ? answersInACrowd : answersATurn;
    const isFirst = this.#unread.length === 0;
    if (isFirst) {
      this.#unread = chunk;
      this.sinceMs = this.#deps.clock.steadyMs();
    } else this.#unread = Buffer.concat([this.#unread, chunk]);
    if (this.#isLent) {
      this.#unread = kept(this.#unread);
      this.#lend();
    } else this.#turn(isFirst);
    if (this.#isWaiting() && this.#unread.length > waitingBytesMax) this.connection.socket.pause();
  }

  /** Whether what comes has to wait: for an answer that is made, for one that leaves, or for its turn. */
  #isWaiting(): boolean {
    if (this.#exchange !== undefined || this.#isLent || this.connection.waitsForTurn) return true;
    return this.connection.socket.writableNeedDrain;
  }

  /** Answers what has come, as far as it can be answered now. `isTimed`: the clock was read in this step. */
  #turn(isTimed = false): void {
    let at = 0;
    const bytes = this.#unread;
    while (at < bytes.length && !this.#isOver && !this.#isWaiting()) {
      const scan = this.#deps.usesLane() ? scanHead(bytes, at, this.#known) : odd;
      if (scan.kind === "more") break;
      if (scan.kind === "odd") {
        this.#flush();
        this.#unread = kept(bytes.subarray(at));
        this.#lend();
        return;
      }
      if (this.#leftOfTurn <= 0) {
        this.#waitForTurn();
        break;
      }
      this.#leftOfTurn--;
      at = scan.end;
      if (scan.kind === "purge") {
        this.#pass(scan, hasToWait);
        continue;
      }
      if (scan.said !== this.#known) this.#know(scan.said);
      this.#answer(scan);
    }
    this.#flush();
    const isDone = this.#isOver || at === bytes.length;
    this.#unread = isDone ? nothing : kept(bytes.subarray(at));
    if (at === 0 || isTimed) return;
    this.sinceMs = this.#deps.clock.steadyMs();
  }

  #waitForTurn(): void {
    this.connection.waitsForTurn = true;
    this.#deps.turns.wait(this);
  }

  #know(said: PlainFields): void {
    this.#known = said.text.length <= knownBytesMax ? said : undefined;
    // Of a connection with many visitors the first is as good as any.
    if (this.#known !== undefined && !this.#hasAnswered)
      this.#deps.recent.keep(this.connection.peer, said);
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
    const onWritten = this.#isPlain ? undefined : this.#leave(gathered);
    if (body === undefined) socket.write(text, "latin1", onWritten);
    else {
      socket.cork();
      socket.write(text, "latin1");
      socket.write(body, onWritten);
      socket.uncork();
    }
    if (onWritten === undefined) {
      if (hasAll(socket)) {
        for (const written of gathered) this.#record(written, written.answer.status);
        return;
      }
      // An empty write is done when all before it are.
      socket.write("", "latin1", this.#leave(gathered));
    }
    if (socket.writableNeedDrain) socket.setTimeout(stallMs);
  }

  /** Notes answers that the kernel does not have yet, and returns what is to be told when it has. */
  #leave(gathered: readonly Written[]): (error?: Error | null) => void {
    this.#leaving.push(...gathered);
    return this.#onWritten(gathered.length);
  }

  #onWritten(count: number): (error?: Error | null) => void {
    return (error) => {
      // Node tells a write that was under way when its socket was destroyed as one that succeeded.
      const isCut = Boolean(error) || this.connection.socket.destroyed;
      for (const written of this.#leaving.splice(0, count))
        this.#record(written, isCut ? visitorGone : written.answer.status);
      if (this.#isLent && !this.#isOver) this.#lend();
    };
  }

  #record({ answer, bytes }: Written, status: number): void {
    const { asked, cache } = answer;
    this.#deps.recorder.quick(asked, { status, cache, bytesSent: bytes });
  }

  #pass(head: PlainHead | PurgeHead, passed: QuickPass): void {
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
    if (this.#isOver || this.connection.hasParted) return;
    if (carrier.isLast) this.#finish();
    else this.#goOn();
  }

  #drained(): void {
    if (this.#exchange !== undefined || this.#isLent || this.#isOver) return;
    this.connection.socket.setTimeout(0);
    this.#goOn();
  }

  #goOn(): void {
    this.#turn();
    const { socket } = this.connection;
    if (this.#isOver || this.#isWaiting()) return;
    if (this.#endsBehindTurn) socket.end();
    else if (socket.isPaused()) socket.resume();
  }

  /** The visitor sends nothing more: as with node:http, nothing more is answered that is not on its way. */
  #ended(): void {
    const { socket, live } = this.connection;
    const lent = this.#isLent ? this.#lent : undefined;
    if (this.connection.waitsForTurn) this.#endsBehindTurn = true;
    else if (lent !== undefined && !lent.isClean) lent.giveEnd();
    // Where nothing is on its way, closing says the same and costs less; TLS says more at its end.
    else if (live.size === 0 && this.#leaving.length === 0 && !(socket instanceof TLSSocket))
      socket.destroy();
    else socket.end();
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

  /** Leaves the connection to somebody else, and returns what has come and was not read. Nothing more is read until he does. */
  leave(): Buffer {
    this.#isOver = true;
    const { socket } = this.connection;
    socket.off("data", this.#onData).off("drain", this.#onDrain).off("end", this.#onEnd);
    socket.off("timeout", this.#onTimeout);
    socket.pause();
    this.#reads?.leave();
    this.#lent?.part();
    const rest = kept(this.#unread);
    this.#unread = nothing;
    return rest;
  }

  #makeLent(): LentSocket {
    const onResume = (): void => {
      if (this.#isLent) this.#lend();
    };
    const lent = new LentSocket(this.connection, { onResume, onLast: () => this.#finish() });
    this.#deps.lend(lent);
    return lent;
  }

  /** Gives node:http what has come, until it has whole requests and nothing more. */
  #lend(): void {
    this.#lendMore();
    this.lentAnswered();
  }

  #lendMore(): void {
    const lent = (this.#lent ??= this.#makeLent());
    if (!this.#isLent) lent.begin();
    this.#isLent = true;
    this.#hasAnswered = true;
    // Records are told in the order of their requests: node:http begins when all before it has left.
    if (this.#leaving.length === 0) this.#feed(lent);
    this.sinceMs = this.#deps.clock.steadyMs();
    const { socket } = this.connection;
    const hasRoom = this.#unread.length <= waitingBytesMax;
    if (hasRoom && !this.#isOver && !lent.isClean && lent.takes && socket.isPaused())
      socket.resume();
  }

  /** Requests go to it a few at a time: what is pipelined behind them waits here. The body of one goes as it came. */
  #feed(lent: LentSocket): void {
    const { live } = this.connection;
    let before: Buffer = nothing;
    if (this.connection.waitsForTurn) return;
    while (this.#unread.length > 0 && !this.#isOver && lent.takes && !lent.isClean) {
      const { newest } = this.connection;
      const isWithinBody = newest !== undefined && !newest.isReceived;
      if (!isWithinBody && live.size >= lentAtATime) return;
      if (!isWithinBody && this.#leftOfTurn <= 0) {
        this.#waitForTurn();
        return;
      }
      const { length } = this.#unread;
      const butLast = Math.max(1, length - 1);
      const end = isWithinBody ? butLast : Math.min(butLast, this.#lentPiece(live.size > 0));
      const bytes = this.#unread.subarray(0, end);
      this.#unread = this.#unread.subarray(end);
      const liveBefore = live.size;
      lent.give(bytes, before);
      this.#leftOfTurn -= lentWeight * (live.size - liveBefore);
      before = bytes;
    }
  }

  /** Behind another request the last byte of a head goes by itself: it may end a request, and then the lane goes on. */
  #lentPiece(isBehind: boolean): number {
    if (!isBehind) return lentPieceBytes;
    if (this.#unread[0] === lineFeed) return 1;
    const end = this.#unread.indexOf(headEnd, 0, "latin1");
    return end < 0 ? lentPieceBytes : Math.min(lentPieceBytes, end + headEnd.length - 1);
  }

  /** To be told when an exchange of node:http has ended. */
  lentAnswered(): void {
    const { live, newest } = this.connection;
    if (!this.#isLent || this.#isOver) return;
    if (this.#lent?.isClean !== true) {
      if (this.#unread.length > 0) {
        if (live.size < lentAtATime) this.#lendMore();
      } else if (this.#endsBehindTurn && live.size === 0) {
        this.#endsBehindTurn = false;
        this.#lent?.giveEnd();
      }
      return;
    }
    if (live.size > 0 || newest?.isLast === true) return;
    this.#isLent = false;
    this.sinceMs = this.#deps.clock.steadyMs();
    this.#goOn();
  }
}
