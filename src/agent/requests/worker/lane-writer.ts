// The worker's end of a lane: it numbers each record before any queue, gathers what a few milliseconds bring,
// and hands it to the spool thread.
//
// Nothing here waits. A number is given out only when the spool has reserved it, for otherwise a crash could
// lose a record without a trace, and only while the spool thread is not too far behind. Other records are
// dropped, counted, and told as a gap of `behind` in their place. Under `block` a request claims room for its
// record before it is served, so that its record is never dropped.
//
// A resting lane gives reserved numbers back, so that a crash tells of few: it keeps 16, and none before its
// first record. A busy one that becomes less busy keeps what four seconds bring. With `quiet` the worker promises a lower
// end, and it trusts the shared word again once the spool thread has answered. A connection or request wakes the lane. Until that is answered, which takes one sync of
// the disk, records without a number are kept back, and a request for whose record no number is left waits.

import type { MessagePort } from "node:worker_threads";
import { sleep } from "../../../base/wait.ts";
import type { CanaryLine, RequestRecord } from "../../../wire/request-log.ts";
import type { GapReason } from "../spool/gaps.ts";
import { slowWindowMax, windowAtRest } from "../spool/lane-window.ts";
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
/** A lane that is awake keeps what came in that time, this many times; and numbers are given back where half of them are too many. */
const quietTimesKept = 4;
/** A group with so many bytes is handed over. With a last record of recordCharsMax it has 0.9 MiB, well below a frame's limit. */
const groupBytesMax = 128 * 2 ** 10;
/** The memory in which groups are gathered begins with so many bytes, and grows. */
const groupBytesFirst = 32 * 2 ** 10;
/** The most of it that is kept for the next group. */
const groupBytesKept = 512 * 2 ** 10;
const lineFeed = 10;
/** The most characters of a record. One with the largest fields, each character escaped, has some 65,000. */
const recordCharsMax = 256 * 2 ** 10;
/**
 * The most bytes that a worker may have posted and the spool thread not yet taken: 16,384 records of 1 KiB.
 */
const inFlightBytesMax = 16 * 2 ** 20;
/** The longest time that requests wait for a lane to wake; where the disk is slower, they are served without. */
const wakeWaitMs = 100;
/** The time between two looks whether the lane is awake. */
const wakeLookMs = 1;
/** The most records that are kept back while the lane wakes. */
const keptBackMax = 4_096;
/** The time between two looks for room to tell of dropped records. */
const droppedLookMs = 50;
const closeWaitMs = 5_000;

type RecordOrLine = RequestRecord | CanaryLine | string;

type Waking = {
  readonly sinceMs: number;
  readonly timer: NodeJS.Timeout;
  readonly promise: Promise<void>;
  readonly resolve: () => void;
};

export class LaneWriter {
  readonly #port: MessagePort;
  readonly #words: LaneWords;
  readonly #groupMs: number;
  readonly #blocks: boolean;
  #next = 1;
  /** The count of records taken, numbered or not. */
  #seen = 0;
  /** The count of numbers from #next on that are promised to requests. */
  #claimed = 0;
  /** The number of `quiet` messages sent. */
  #quiets = 0;
  #restTimer: NodeJS.Timeout | undefined;
  /** Whether only the numbers of a resting lane may be used. */
  #isResting = true;
  /** The number of `wake` messages sent. */
  #wakes = 0;
  /** What waits for the lane to wake; undefined while it need not. */
  #waking: Waking | undefined;
  /** The requests that began while the lane rests. */
  #begun = 0;
  /** Records that get their numbers when the lane is awake. */
  #keptBack: RecordOrLine[] = [];
  #reserved = 0;
  #postedBytes = 0;
  /** What the spool thread had taken when it was looked at last. */
  #takenBytes = 0;
  /** The lines of the group that is gathered, and how far it is filled. */
  #group = Buffer.allocUnsafeSlow(groupBytesFirst);
  #filled = 0;
  #count = 0;
  /**
   * The count of dropped records without a number yet; they get theirs when there is room to tell of them.
   */
  #dropped = 0;
  /** Since when the records of the group have come, where they were kept back. */
  #groupSinceMs: number | undefined;
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

  /** Whether more numbers may be used than those of a resting lane. */
  get isAwake(): boolean {
    return !this.#ended && !this.#isResting;
  }

  /** Notes that a visitor is there whose requests will have records. */
  wake(): void {
    if (!this.#isResting || this.#ended) return;
    if (this.#waking !== undefined) {
      this.#lookAwake();
      return;
    }
    this.#wakes++;
    this.#send({ type: "wake" });
    const timer = setInterval(() => this.#lookAwake(), wakeLookMs).unref();
    this.#waking = { sinceMs: performance.now(), timer, ...Promise.withResolvers<void>() };
  }

  /**
   * Notes that a request begins. Returns what it has to wait for, so that its record has a number whatever happens
   * then; undefined if it has to wait for nothing, which is almost always.
   */
  begins(): Promise<void> | undefined {
    if (!this.#isResting || this.#ended) return undefined;
    this.wake();
    if (!this.#isResting) return undefined;
    this.#learnReserved();
    return ++this.#begun > this.#reserved - this.#next + 1 ? this.#waking?.promise : undefined;
  }

  /**
   * Keeps room for one record and returns whether there was any; accept the record as claimed to give the
   * room back.
   */
  claim(): boolean {
    this.wake();
    if (this.#ended || !this.#hasNumber(true) || this.#isBehind()) return false;
    this.#claimed++;
    return true;
  }

  /** Takes a record, or its line as JSON without a line's end. Never blocks, never throws. Nothing may come after close. */
  accept(record: RecordOrLine, isClaimed = false): void {
    if (this.#ended) return;
    this.#words.seen = ++this.#seen; // Before it has a number: whoever adds up sees no record twice.
    if (isClaimed) this.#claimed--;
    else {
      this.wake();
      if (this.#keptBack.length > 0 || !this.#hasRoom()) {
        this.#keepBack(record);
        return;
      }
    }
    this.#number(record);
  }

  #number(record: RecordOrLine): void {
    const line = typeof record === "string" ? record : JSON.stringify(record);
    if (line.length > recordCharsMax) {
      this.#gap(1, "oversize");
      return;
    }
    this.#write(line);
    this.#count++;
    this.#words.accepted = this.#next++;
    if (this.#isGroupFull()) this.#flush();
    else this.#wake();
  }

  /** Each UTF-16 unit of a line has 3 bytes at most. */
  #write(line: string): void {
    const most = this.#filled + 3 * line.length + 1;
    if (most > this.#group.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(most, 2 * this.#group.length));
      this.#group.copy(larger, 0, 0, this.#filled);
      this.#group = larger;
    }
    this.#filled += this.#group.write(line, this.#filled);
    this.#group[this.#filled++] = lineFeed;
  }

  /** Resolves when everything accepted is durable or told as a gap; after some 5 s at the latest. */
  async close(): Promise<void> {
    if (this.#ended) return;
    // Resolves late where the spool thread does not answer.
    const waking = this.#waking;
    if (this.#keptBack.length > 0) await waking?.promise;
    this.#numberKeptBack(waking?.sinceMs);
    this.#flush();
    this.#tellDropped(Infinity);
    this.#ended = true;
    this.#waking?.resolve();
    clearInterval(this.#waking?.timer);
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

  /** Keeps a record without a number until the lane is awake, or drops it. */
  #keepBack(record: RecordOrLine): void {
    if (this.#isResting && this.#keptBack.length < keptBackMax) this.#keptBack.push(record);
    else {
      this.#dropped++;
      this.#watchDropped();
    }
    this.#tellWaiting();
  }

  /** Numbers the records that were kept back since `sinceMs`. */
  #numberKeptBack(sinceMs: number | undefined): void {
    const records = this.#keptBack;
    if (records.length === 0) return;
    this.#keptBack = [];
    this.#flush();
    this.#groupSinceMs = sinceMs;
    for (const record of records)
      if (this.#hasRoom()) this.#number(record);
      else this.#dropped++;
    this.#flush();
    this.#groupSinceMs = undefined;
    if (this.#dropped > 0) this.#watchDropped();
    this.#tellWaiting();
  }

  #lookAwake(): void {
    const waking = this.#waking;
    if (waking === undefined) return;
    const isAnswered = this.#words.woken === this.#wakes;
    if (isAnswered || this.#ended || performance.now() - waking.sinceMs > wakeWaitMs)
      waking.resolve();
    if (!isAnswered && !this.#ended) return;
    clearInterval(waking.timer);
    this.#waking = undefined;
    if (this.#ended) return;
    this.#isResting = false;
    this.#begun = 0;
    this.#learnReserved();
    this.#numberKeptBack(waking.sinceMs);
    this.#watchRest();
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
    if (this.#count >= groupRecordsMax || this.#filled >= groupBytesMax) return true;
    const isLarge = (): boolean =>
      this.#count > (this.#reserved - this.#next) / (groupsReserved - 1);
    if (this.#count < groupLeast || !isLarge()) return false;
    this.#learnReserved();
    return isLarge();
  }

  #isBehind(): boolean {
    if (this.#postedBytes - this.#takenBytes <= inFlightBytesMax) return false;
    this.#takenBytes = this.#words.taken;
    return this.#postedBytes - this.#takenBytes > inFlightBytesMax;
  }

  #tellDropped(most: number): void {
    const count = Math.min(most, this.#dropped);
    if (count > 0) this.#gap(count, this.#blocks ? "blocked" : "behind");
    this.#dropped -= Math.max(0, count);
    this.#tellWaiting();
  }

  #tellWaiting(): void {
    this.#words.waiting = this.#dropped;
    this.#words.kept = this.#keptBack.length;
  }

  #gap(count: number, reason: GapReason): void {
    this.#flush();
    this.#post({ type: "gap", firstSeq: this.#next, count, reason });
    this.#next += count;
    this.#words.accepted = this.#next - 1;
  }

  #flush(): void {
    if (this.#count === 0) return;
    const payload = new Uint8Array(this.#group.subarray(0, this.#filled));
    this.#postedBytes += payload.byteLength;
    const firstSeq = this.#next - this.#count;
    const overMs =
      this.#groupSinceMs === undefined ? undefined : performance.now() - this.#groupSinceMs;
    this.#post(
      {
        type: "group",
        firstSeq,
        count: this.#count,
        ...(overMs === undefined ? {} : { overMs }),
        payload,
      },
      payload.buffer,
    );
    this.#filled = 0;
    this.#count = 0;
    // What one very large record took is not kept.
    if (this.#group.length > groupBytesKept) this.#group = Buffer.allocUnsafeSlow(groupBytesFirst);
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
      if (this.#next > since || this.#claimed > 0) this.#giveBack(this.#next - since);
      else this.#rest();
    }, quietMs).unref();
  }

  #rest(): void {
    this.#learnReserved();
    const through = this.#next - 1 + (this.#next === 1 ? 0 : windowAtRest);
    if (this.#ended || this.#reserved <= through) return;
    this.#isResting = true;
    this.#promise(through, true);
  }

  /** Gives back what a burst had reserved, when `lately` so many came. */
  #giveBack(lately: number): void {
    this.#watchRest();
    this.#learnReserved();
    const kept = Math.max(slowWindowMax, quietTimesKept * lately) + this.#claimed;
    const through = this.#next - 1 + kept;
    if (!this.#ended && this.#reserved - through > kept) this.#promise(through, false);
  }

  /** Promises to give no number beyond `through`. */
  #promise(through: number, rests: boolean): void {
    this.#reserved = through;
    this.#quiets++;
    this.#send({ type: "quiet", through, rests });
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
