// The worker's end of a lane: it numbers each record before any queue, gathers what a few milliseconds bring,
// and hands it to the spool thread.
//
// Nothing here waits. A number is given out only when the spool has reserved it, for otherwise a crash could
// lose a record without a trace, and only while the spool thread is not too far behind. Other records are
// dropped, counted, and told as a gap of `behind` in their place. Under `block` a request claims room for its
// record before it is served, so that its record is never dropped.
//
// A resting lane gives reserved numbers back, so that a crash tells of few. With `quiet` the worker promises
// a lower end, and it trusts the shared word again once the spool thread has answered.

import type { MessagePort } from "node:worker_threads";
import { sleep } from "../../../base/wait.ts";
import type { CanaryLine, RequestRecord } from "../../../wire/request-log.ts";
import type { GapReason } from "../spool/gaps.ts";
import { windowMin } from "../spool/lane-window.ts";
import { LaneWords } from "./lane-words.ts";
import type { LaneInit, LaneMessage } from "../spool/spool-messages.ts";

const groupRecordsMax = 512;
/**
 * A group that uses a quarter of the reserved numbers is handed over at once, so that more are reserved
 * before they run out.
 */
const groupsReserved = 4;
const groupLeast = 16;
/** The time without a record after which the lane rests. */
const quietMs = 1_000;
/**
 * The most characters of a group. At 3 bytes a character, and with a last record of recordCharsMax, that is
 * 1.2 MiB, well below a frame's limit.
 */
const groupCharsMax = 128 * 2 ** 10;
/** The most characters of a record. One with the largest fields, each character escaped, has some 65,000. */
const recordCharsMax = 256 * 2 ** 10;
/**
 * The most bytes that a worker may have posted and the spool thread not yet taken: 16,384 records of 1 KiB.
 */
const inFlightBytesMax = 16 * 2 ** 20;
/** The time between two looks for room to tell of dropped records. */
const droppedLookMs = 50;
const closeWaitMs = 5_000;

export class LaneWriter {
  readonly #port: MessagePort;
  readonly #words: LaneWords;
  readonly #groupMs: number;
  readonly #blocks: boolean;
  #next = 1;
  /** The count of numbers from #next on that are promised to requests. */
  #claimed = 0;
  /** The number of `quiet` messages sent. */
  #quiets = 0;
  #restTimer: NodeJS.Timeout | undefined;
  #reserved = 0;
  #postedBytes = 0;
  #text = "";
  #count = 0;
  /**
   * The count of dropped records without a number yet; they get theirs when there is room to tell of them.
   */
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #dropTimer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor({ shared, groupMs, blocks = false }: LaneInit, port: MessagePort) {
    this.#port = port;
    this.#words = new LaneWords(shared);
    this.#groupMs = groupMs;
    this.#blocks = blocks;
    port.once("close", () => (this.#ended = true));
    port.unref();
  }

  /** Whether the spool thread has opened the lane; before, there are no numbers to give out. */
  get isOpen(): boolean {
    return !this.#ended && this.#words.reserved > 0;
  }

  /**
   * Keeps room for one record and returns whether there was any; accept the record as claimed to give the
   * room back.
   */
  claim(): boolean {
    if (this.#ended || !this.#hasNumber(true) || this.#isBehind()) return false;
    this.#claimed++;
    return true;
  }

  /** Takes a record. Never blocks, never throws. Nothing may come after close. */
  accept(record: RequestRecord | CanaryLine, isClaimed = false): void {
    if (this.#ended) return;
    if (isClaimed) this.#claimed--;
    else if (!this.#hasRoom()) {
      this.#words.waiting = ++this.#dropped;
      this.#watchDropped();
      return;
    }
    const line = JSON.stringify(record);
    if (line.length > recordCharsMax) {
      this.#gap(1, "oversize");
      return;
    }
    this.#text += `${line}\n`;
    this.#count++;
    this.#words.accepted = this.#next++;
    if (this.#isGroupFull()) this.#flush();
    else this.#wake();
  }

  /** Resolves when everything accepted is durable or told as a gap; after 5 s at the latest. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#flush();
    this.#tellDropped(Infinity);
    this.#ended = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#dropTimer);
    clearTimeout(this.#restTimer);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#port.once("message", () => resolve());
    this.#port.once("close", () => resolve());
    this.#send({ type: "end" });
    const deadline = new AbortController();
    await Promise.race([promise, sleep(closeWaitMs, deadline.signal)]);
    deadline.abort();
    this.#port.close();
  }

  /** Whether the next record gets a number. Tells of those dropped before it. */
  #hasRoom(): boolean {
    if (!this.#hasNumber(this.#blocks) || this.#isBehind()) return false;
    if (this.#dropped === 0) return true;
    // Promised numbers are not used for them.
    this.#tellDropped(this.#blocks ? this.#reserved - this.#next - this.#claimed + 1 : Infinity);
    return this.#dropped === 0 && this.#hasNumber(false);
  }

  /**
   * Whether there is a reserved number for another record. With `isNew` the shared word is read in any case,
   * since reserved numbers may have been taken back.
   */
  #hasNumber(isNew: boolean): boolean {
    const seq = this.#next + this.#claimed;
    if (isNew || seq > this.#reserved) this.#learnReserved();
    return seq <= this.#reserved;
  }

  /**
   * Reads the shared word, but not before the last `quiet` is answered, since until then it may be out of
   * date.
   */
  #learnReserved(): void {
    if (this.#words.quieted === this.#quiets) this.#reserved = this.#words.reserved;
  }

  #isGroupFull(): boolean {
    if (this.#count >= groupRecordsMax || this.#text.length >= groupCharsMax) return true;
    const isLarge = (): boolean =>
      this.#count > (this.#reserved - this.#next) / (groupsReserved - 1);
    if (this.#count < groupLeast || !isLarge()) return false;
    this.#learnReserved();
    return isLarge();
  }

  #isBehind(): boolean {
    return this.#postedBytes - this.#words.taken > inFlightBytesMax;
  }

  #tellDropped(most: number): void {
    const count = Math.min(most, this.#dropped);
    if (count > 0) this.#gap(count, this.#blocks ? "blocked" : "behind");
    this.#words.waiting = this.#dropped -= Math.max(0, count);
  }

  #gap(count: number, reason: GapReason): void {
    this.#flush();
    this.#post({ type: "gap", firstSeq: this.#next, count, reason });
    this.#next += count;
    this.#words.accepted = this.#next - 1;
  }

  #flush(): void {
    if (this.#count === 0) return;
    const payload = new TextEncoder().encode(this.#text);
    this.#postedBytes += payload.byteLength;
    const firstSeq = this.#next - this.#count;
    this.#post({ type: "group", firstSeq, count: this.#count, payload }, payload.buffer);
    this.#text = "";
    this.#count = 0;
  }

  #wake(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#flush();
    }, this.#groupMs).unref();
  }

  /** Reports dropped records even when no further record comes. */
  #watchDropped(): void {
    this.#dropTimer ??= setTimeout(() => {
      this.#dropTimer = undefined;
      this.#hasRoom();
      if (this.#dropped > 0) this.#watchDropped();
    }, droppedLookMs).unref();
  }

  #watchRest(): void {
    if (this.#restTimer !== undefined) return;
    const since = this.#next;
    this.#restTimer = setTimeout(() => {
      this.#restTimer = undefined;
      if (this.#next > since || this.#claimed > 0) this.#watchRest();
      else this.#rest();
    }, quietMs).unref();
  }

  #rest(): void {
    this.#learnReserved();
    const through = this.#next - 1 + windowMin;
    if (this.#ended || this.#reserved <= through) return;
    this.#reserved = through;
    this.#quiets++;
    this.#send({ type: "quiet", through });
  }

  #post(message: LaneMessage, ...transfer: ArrayBuffer[]): void {
    this.#send(message, transfer);
    this.#watchRest();
  }

  #send(message: LaneMessage, transfer: ArrayBuffer[] = []): void {
    this.#port.postMessage(message, transfer);
  }
}

/** Opens the worker's end. `port` is the lane's own and was transferred to this thread. */
export function openLaneWriter(init: LaneInit, port: MessagePort): LaneWriter {
  return new LaneWriter(init, port);
}
