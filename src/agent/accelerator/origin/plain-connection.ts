// One connection of HTTP/1.1 to an origin without TLS: one request at a time, its answer read strictly, its body given out as it comes.
//
// A connection is used again when the origin keeps it open, the request was sent whole, the answer has ended where it said it would, and no byte came behind it.
// An answer to HEAD ends it: an origin that sends a body all the same would answer the next request with it.

import type { Socket } from "node:net";
import type { StopSignal } from "../../../base/stop.ts";
import { kept, SharedReads } from "../shared-reads.ts";
import { ChunkedBody } from "./chunked-body.ts";
import { BodyGate, type BodyTaker, type OriginBody } from "./origin-body.ts";
import { requestHead, type RequestFraming } from "./request-head.ts";
import { scanResponseHead, type ResponseHead } from "./response-head.ts";
import type { WireAnswer, WireRequest } from "./wire-request.ts";

export type AskEvents = {
  readonly onAnswer: (answer: WireAnswer) => void;
  /** There is none, and the connection is closed. `isUnanswered`: the origin closed it before a byte of an answer. */
  readonly onFailure: (error: Error, isUnanswered: boolean) => void;
  /** After an answer: the request has nothing to do with the connection any more. */
  readonly onOver: () => void;
};

/** An origin broke off, or what it says is no HTTP. */
export class OriginBroken extends Error {}

/** An origin fell silent. */
export class OriginSilent extends Error {
  readonly code: "ERR_ORIGIN_HEAD_TIMEOUT" | "ERR_ORIGIN_BODY_TIMEOUT";

  constructor(what: "head" | "body") {
    super(`the origin did not send the ${what} of its answer in time`);
    this.code = what === "head" ? "ERR_ORIGIN_HEAD_TIMEOUT" : "ERR_ORIGIN_BODY_TIMEOUT";
  }
}

/** An origin that goes on and on without an answer has none. */
const interimMax = 64;
/** Bodies of requests up to this size are copied, to leave with their head. */
const copiedBytesMax = 16_384;
const nothing = Buffer.alloc(0);

export class PlainConnection {
  readonly socket: Socket;
  /** It has answered before: it may have been closed meanwhile. */
  isUsed = false;
  /** By the steady clock, while nothing is asked: until when the origin is trusted to keep it open. */
  keptUntilMs = 0;
  readonly #onIdle: (connection: PlainConnection, keepAliveMs: number | undefined) => void;
  readonly #onGone: (connection: PlainConnection) => void;
  #asking: Asking | undefined;
  readonly #timer = new SilenceTimer(() => this.#asking?.silent());

  constructor(
    socket: Socket,
    onIdle: (connection: PlainConnection, keepAliveMs: number | undefined) => void,
    onGone: (connection: PlainConnection) => void,
  ) {
    this.socket = socket;
    this.#onIdle = onIdle;
    this.#onGone = onGone;
    const take = (bytes: Buffer): void => {
      // Nobody has asked.
      if (this.#asking === undefined) socket.destroy();
      else this.#asking.received(bytes);
    };
    SharedReads.of(socket, take); // What it does not take comes as data.
    socket.on("data", take);
    socket.on("end", () => this.#asking?.ended());
    socket.on("error", (error) => this.#asking?.broke(error));
    socket.on("close", () => {
      this.#timer.end();
      this.#asking?.broke(new OriginBroken("the origin closed the connection"));
      this.#onGone(this);
    });
    socket.on("drain", () => this.#asking?.drained());
  }

  get isUsable(): boolean {
    const { socket } = this;
    return !socket.destroyed && socket.readable && socket.writable && this.#asking === undefined;
  }

  ask(request: WireRequest, events: AskEvents): void {
    const asking = new Asking(this.socket, request, this.#timer, {
      ...events,
      onOver: (reusedFor, isAnswered) => {
        this.#asking = undefined;
        this.#timer.rest();
        if (reusedFor === undefined) this.socket.destroy();
        else {
          this.isUsed = true;
          this.#onIdle(this, reusedFor.keepAliveMs);
        }
        if (isAnswered) events.onOver();
      },
    });
    this.#asking = asking;
    asking.begin();
  }

  close(): void {
    this.socket.destroy();
  }
}

/** Tells of silence. One timer for all requests of a connection: to set it again costs next to nothing. */
class SilenceTimer {
  readonly #onSilence: () => void;
  #timer: NodeJS.Timeout | undefined;
  #ms = 0;
  #isWatching = false;

  constructor(onSilence: () => void) {
    this.#onSilence = onSilence;
  }

  watch(ms: number): void {
    this.#isWatching = true;
    if (this.#timer !== undefined && this.#ms === ms) {
      this.#timer.refresh();
      return;
    }
    clearTimeout(this.#timer);
    this.#ms = ms;
    this.#timer = setTimeout(() => {
      if (this.#isWatching) this.#onSilence();
    }, ms).unref();
  }

  rest(): void {
    this.#isWatching = false;
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isWatching = false;
  }
}

type AskingEvents = Omit<AskEvents, "onOver"> & {
  /** `reusedFor` undefined: the connection cannot be used again. */
  readonly onOver: (
    reusedFor: { readonly keepAliveMs: number | undefined } | undefined,
    isAnswered: boolean,
  ) => void;
};

/** One request and its answer. */
class Asking implements OriginBody {
  readonly #socket: Socket;
  readonly #request: WireRequest;
  readonly #timer: SilenceTimer;
  readonly #events: AskingEvents;
  #unread: Buffer = nothing;
  #hasAnswer = false;
  #interim = 0;
  #head: ResponseHead | undefined;
  #left = 0;
  #chunked: ChunkedBody | undefined;
  /** The request was sent whole. */
  #isSent = false;
  #hasRoom: (() => void) | undefined;
  /** The connection is not this request's any more. */
  #isOver = false;
  /** The head is told, and what came with it is not read yet: if that is all, the connection can be used again by whoever discards the answer now. */
  #isBeginning = false;
  #isDiscarded = false;
  readonly #gate = new BodyGate({
    pause: () => {
      if (!this.#isOver) this.#socket.pause();
    },
    resume: () => {
      if (!this.#isOver && this.#socket.isPaused()) this.#socket.resume();
    },
  });
  readonly #onStop = (): void => this.#fail(stopReason(this.#request.stop));

  constructor(socket: Socket, request: WireRequest, timer: SilenceTimer, events: AskingEvents) {
    this.#socket = socket;
    this.#request = request;
    this.#timer = timer;
    this.#events = events;
  }

  begin(): void {
    const { method, path, fields, body, stop, headMs } = this.#request;
    try {
      const { text, framing } = requestHead(method, path, fields, body !== undefined);
      stop.addEventListener("abort", this.#onStop);
      this.#timer.watch(headMs);
      if (typeof body === "function") {
        this.#socket.write(text, "latin1");
        void this.#send(body, framing);
      } else this.#sendWhole(text, body, framing);
    } catch (error) {
      this.#fail(asError(error));
    }
  }

  /** In one write, where that is no more than to copy a little. */
  #sendWhole(head: string, body: Uint8Array | undefined, framing: RequestFraming): void {
    const socket = this.#socket;
    this.#isSent = true;
    if (body === undefined) socket.write(head, "latin1");
    else if (framing.kind === "length" && framing.bytes !== body.length)
      throw new OriginBroken("the request's body has another length than stated");
    else if (body.length <= copiedBytesMax && framing.kind === "length")
      socket.write(head + latin1(body), "latin1");
    else {
      socket.cork();
      socket.write(head, "latin1");
      if (framing.kind === "length") socket.write(body);
      else {
        if (body.length > 0) writeChunk(socket, body);
        socket.write("0\r\n\r\n", "latin1");
      }
      socket.uncork();
    }
  }

  async #send(body: () => AsyncGenerator<Uint8Array>, framing: RequestFraming): Promise<void> {
    const socket = this.#socket;
    let left = framing.kind === "length" ? framing.bytes : Infinity;
    try {
      for await (const piece of body()) {
        if (this.#isOver) return;
        if (piece.length === 0) continue;
        left -= piece.length;
        if (left < 0) throw new OriginBroken("the request's body is longer than stated");
        const hasRoom =
          framing.kind === "chunked" ? writeChunk(socket, piece) : socket.write(piece);
        if (this.#head === undefined) this.#timer.watch(this.#request.headMs);
        if (!hasRoom) await this.#room();
        if (this.#isOver) return;
      }
      if (left !== Infinity && left > 0)
        throw new OriginBroken("the request's body is shorter than stated");
      if (framing.kind === "chunked") socket.write("0\r\n\r\n", "latin1");
      this.#isSent = true;
      if (this.#head === undefined) this.#timer.watch(this.#request.headMs);
    } catch (error) {
      this.#fail(asError(error));
    }
  }

  async #room(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#hasRoom = resolve;
    await promise;
  }

  drained(): void {
    this.#hasRoom?.();
    this.#hasRoom = undefined;
  }

  silent(): void {
    const { headMs, silenceMs } = this.#request;
    // A visitor who takes his time with a body is not the origin's silence, nor one who takes his time with the answer.
    if (this.#head === undefined) {
      if (this.#isSent || this.#socket.writableNeedDrain) this.#fail(new OriginSilent("head"));
      else this.#timer.watch(headMs);
    } else if (this.#socket.isPaused()) this.#timer.watch(silenceMs);
    else this.#fail(new OriginSilent("body"));
  }

  received(chunk: Buffer): void {
    this.#hasAnswer = true;
    if (this.#head === undefined) this.#readHead(chunk);
    else {
      this.#timer.watch(this.#request.silenceMs);
      this.#readBody(chunk, 0);
    }
  }

  ended(): void {
    const { framing } = this.#head ?? {};
    if (framing?.kind === "close") this.#complete(false);
    else this.#fail(new OriginBroken("the origin closed the connection"), !this.#hasAnswer);
  }

  broke(error: Error): void {
    this.#fail(error, !this.#hasAnswer);
  }

  #readHead(chunk: Buffer): void {
    const bytes = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk]);
    for (let at = 0; ;) {
      const scan = scanResponseHead(bytes, at, this.#request.method === "HEAD");
      if (scan.kind === "more") {
        this.#unread = kept(bytes.subarray(at));
        return;
      }
      const reason = scan.kind === "fault" ? scan.reason : this.#passInterim(scan);
      if (reason !== undefined) {
        this.#fail(new OriginBroken(`the origin's answer cannot be read: ${reason}`));
        return;
      }
      if (scan.kind !== "head") return;
      at = scan.end;
      if (scan.status < 200) continue;
      this.#isBeginning = true;
      this.#begin(scan);
      if (!this.#isOver) this.#readBody(bytes, at);
      this.#isBeginning = false;
      if (this.#isDiscarded) this.#release(false);
      if (!this.#isOver) this.#timer.watch(this.#request.silenceMs);
      return;
    }
  }

  /** Undefined: it is the answer, or one that may come before it; else why it is none. */
  #passInterim({ status, fields }: ResponseHead): string | undefined {
    if (status >= 200) return undefined;
    if (status === 101) return "it switches to a protocol that nobody asked for";
    if (++this.#interim > interimMax) return "it has too many interim answers";
    if (status !== 100) this.#request.onInterim?.(status, fields);
    return undefined;
  }

  #begin(head: ResponseHead): void {
    this.#head = head;
    this.#unread = nothing;
    const { framing } = head;
    if (framing.kind === "length") this.#left = framing.bytes;
    if (framing.kind === "chunked") this.#chunked = new ChunkedBody();
    this.#events.onAnswer({ status: head.status, fields: head.fields, body: this });
  }

  #readBody(bytes: Buffer, at: number): void {
    const framing = this.#head?.framing.kind;
    if (framing === "chunked") {
      this.#readChunks(bytes, at);
      return;
    }
    if (framing === "close") {
      if (at < bytes.length) this.#gate.give(bytes.subarray(at), false);
      return;
    }
    const data = bytes.subarray(at, at + this.#left);
    this.#left -= data.length;
    const isAll = this.#left === 0;
    const isClean = at + data.length === bytes.length;
    if (isAll) this.#release(isClean);
    if (data.length > 0) this.#gate.give(data, isAll);
    if (isAll) this.#gate.end("complete");
  }

  #readChunks(bytes: Buffer, at: number): void {
    let held: Buffer | undefined;
    try {
      const end = this.#chunked?.read(bytes, at, (data) => {
        if (held !== undefined) this.#gate.give(held, false);
        held = data;
      });
      const isAll = end !== undefined;
      if (isAll) this.#release(end === bytes.length);
      if (held !== undefined) this.#gate.give(held, isAll);
      if (isAll) this.#gate.end("complete");
    } catch (error) {
      if (held !== undefined) this.#gate.give(held, false);
      this.#fail(asError(error));
    }
  }

  #complete(isClean: boolean): void {
    this.#release(isClean);
    this.#gate.end("complete");
  }

  /** Gives the connection back. `isClean`: the answer ended with the last byte that came. */
  #release(isClean: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#request.stop.removeEventListener("abort", this.#onStop);
    this.drained();
    const { keepsOpen = false, keepAliveMs } = this.#head ?? {};
    const isKept = isClean && keepsOpen && this.#isSent && this.#request.method !== "HEAD";
    if (isKept && this.#socket.isPaused()) this.#socket.resume();
    this.#events.onOver(isKept ? { keepAliveMs } : undefined, this.#head !== undefined);
  }

  #fail(error: Error, isUnanswered = false): void {
    if (this.#isOver) return;
    this.#release(false);
    if (this.#head === undefined) this.#events.onFailure(error, isUnanswered);
    else this.#gate.end(error);
  }

  flow(taker: BodyTaker): void {
    this.#gate.flow(taker);
  }

  resume(): void {
    this.#gate.resume();
  }

  discard(): void {
    this.#gate.drop();
    this.#isDiscarded = true;
    if (!this.#isBeginning) this.#release(false);
  }
}

function writeChunk(socket: Socket, piece: Uint8Array): boolean {
  socket.cork();
  socket.write(`${piece.length.toString(16)}\r\n`, "latin1");
  socket.write(piece);
  const hasRoom = socket.write("\r\n", "latin1");
  socket.uncork();
  return hasRoom && !socket.writableNeedDrain;
}

function latin1({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString("latin1");
}

function stopReason({ reason }: StopSignal): Error {
  return asError(reason);
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
