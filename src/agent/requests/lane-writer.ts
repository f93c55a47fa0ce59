// The worker's end of a lane: numbers each record before any queue, gathers what a few milliseconds bring, and hands it to the spool thread.
//
// Nothing here waits. A number is given out only when the spool has reserved it (else a crash could lose a record that nobody can tell of), and
// only while the spool thread is not too far behind; records that come meanwhile are dropped, counted, and told as a gap of `behind` in their place.

import type { MessagePort } from "node:worker_threads";
import { sleep } from "../../base/wait.ts";
import type { RequestRecord } from "../../wire/request-log.ts";
import type { GapReason } from "./gaps.ts";
import { LaneWords } from "./lane-words.ts";
import type { LaneInit, LaneMessage } from "./spool-messages.ts";

const groupRecordsMax = 512;
/** With at most 3 bytes a character and a last record of recordCharsMax: 1.2 MiB, well below a frame's limit. */
const groupCharsMax = 128 * 2 ** 10;
/** A record of largest fields, each character escaped, has some 65,000. */
const recordCharsMax = 256 * 2 ** 10;
/** What a worker may have posted that the spool thread has not taken: 16,384 records of 1 KiB. */
const inFlightBytesMax = 16 * 2 ** 20;
const closeWaitMs = 5_000;

export class LaneWriter {
  readonly #port: MessagePort;
  readonly #words: LaneWords;
  readonly #groupMs: number;
  #next = 1;
  #reserved = 0;
  #postedBytes = 0;
  #text = "";
  #count = 0;
  /** Records without a number yet; they get theirs when there is room to tell of them. */
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor({ shared, groupMs }: LaneInit, port: MessagePort) {
    this.#port = port;
    this.#words = new LaneWords(shared);
    this.#groupMs = groupMs;
    port.once("close", () => (this.#ended = true));
    port.unref();
  }

  /** Never blocks, never throws. Nothing comes after close. */
  accept(record: RequestRecord): void {
    if (this.#ended) return;
    if (!this.#hasRoom()) {
      this.#words.waiting = ++this.#dropped;
      this.#wake(this.#groupMs);
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
    if (this.#count >= groupRecordsMax || this.#text.length >= groupCharsMax) this.#flush();
    else this.#wake(this.#groupMs);
  }

  /** Resolves when everything accepted is durable or told as a gap; after 5 s at the latest. */
  async close(): Promise<void> {
    if (this.#ended) return;
    this.#flush();
    this.#tellDropped();
    this.#ended = true;
    clearTimeout(this.#timer);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#port.once("message", () => resolve());
    this.#port.once("close", () => resolve());
    this.#post({ type: "end" });
    const deadline = new AbortController();
    await Promise.race([promise, sleep(closeWaitMs, deadline.signal)]);
    deadline.abort();
    this.#port.close();
  }

  /** Whether the next record gets a number. Tells of those dropped before it. */
  #hasRoom(): boolean {
    if (this.#next > this.#reserved) this.#reserved = this.#words.reserved;
    if (this.#next > this.#reserved) return false;
    if (this.#postedBytes - this.#words.taken > inFlightBytesMax) return false;
    if (this.#dropped === 0) return true;
    this.#tellDropped();
    return this.#next <= this.#reserved;
  }

  #tellDropped(): void {
    if (this.#dropped > 0) this.#gap(this.#dropped, "behind");
    this.#words.waiting = this.#dropped = 0;
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

  #wake(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#flush();
      if (this.#dropped === 0) return;
      this.#hasRoom();
      if (this.#dropped > 0) this.#wake(10 * ms);
    }, ms).unref();
  }

  #post(message: LaneMessage, ...transfer: ArrayBuffer[]): void {
    this.#port.postMessage(message, transfer);
  }
}

/** `port` is the lane's own and was transferred to this thread. */
export function openLaneWriter(init: LaneInit, port: MessagePort): LaneWriter {
  return new LaneWriter(init, port);
}
