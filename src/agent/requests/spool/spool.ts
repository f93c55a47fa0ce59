// The spool of one agent: it takes what workers send into lanes, gives out what is to be sent to central, and
// learns what central has. It is synchronous and lives in the spool thread. It never throws because of the
// disk and never refuses to start: what is lost becomes a gap with a reason, told to central and counted.

import { batchRecordsMax } from "../../../wire/request-log.ts";
import { isCanaryLine } from "./canary-line.ts";
import { LaneAppender } from "./lane-appender.ts";
import { noteGaps, readBatch } from "./lane-reader.ts";
import { LaneShelf, type ShelfOptions } from "./lane-shelf.ts";
import { RecordRoom } from "./record-room.ts";
import { Reservations } from "../worker/reservations.ts";
import { relaxedSyncMs, sampledOf, takeLines } from "./spool-policy.ts";
import type { LaneWords } from "../worker/lane-words.ts";
import { Lane, newLaneMark } from "./lane.ts";
import { attempt } from "./spool-files.ts";
import type { BatchLimits, LaneBatch, LaneMessage, SpoolFacts } from "./spool-messages.ts";

/** The records that one worker sends, whatever lane they go to. */
export type Feed = { readonly words: LaneWords; lane: Lane };

/**
 * The age of the oldest record beyond which a live lane is sealed once central answers again, so that fresh
 * records need not wait behind the backlog.
 */
const sealBehindMs = 10_000;
/** The most sealed lanes that main is told of; the oldest are. */
const sealedToldMax = 64;
/**
 * The most bytes of a segment. It is small because a whole segment is dropped at once to make room. With 16
 * workers at most half of the spool is in open segments.
 */
const segmentBytesMax = 4 * 2 ** 20;
const segmentsMin = 32;

export class Spool {
  readonly #options: ShelfOptions;
  readonly #shelf: LaneShelf;
  readonly #appender: LaneAppender;
  readonly #room: RecordRoom;
  readonly #reservations: Reservations;
  readonly #feeds = new Set<Feed>();
  #laneNo = 0;
  #unsyncedBytes = 0;
  #syncedMs = 0;

  constructor(options: ShelfOptions) {
    const { files, directory, bytesMax, clock } = options;
    this.#options = options;
    this.#shelf = new LaneShelf(options);
    this.#shelf.recover();
    this.#room = new RecordRoom(options, () => this.#shelf.usedBytes);
    this.#reservations = new Reservations(() => this.#room.outstandingMax(this.#feeds.size));
    this.#appender = new LaneAppender({
      files,
      directory,
      segmentBytesMax: Math.min(segmentBytesMax, Math.floor(bytesMax / segmentsMin)),
      monotonicMs: () => clock.monotonicMs(),
      makeRoom: (bytes) => this.#shelf.makeRoom(bytes),
      room: this.#shelf.room,
      reservations: this.#reservations,
      onLoss: () => this.#shelf.touch(),
      nextRank: () => this.#shelf.nextRank(),
      onDisk: (error) => this.#shelf.disk(error),
    });
  }

  /** Opens a feed for a worker, which may number once its words say so. */
  open(words: LaneWords): Feed {
    const lane = this.#newLane(0, words);
    this.#appender.begin(lane);
    this.#shelf.lanes.set(lane.id, lane);
    const feed = { words, lane };
    this.#feeds.add(feed);
    this.#shelf.room.lanes = this.#feeds.size;
    return feed;
  }

  /** Takes a worker's message. What it brings is durable after the next sync. */
  receive({ words, lane }: Feed, message: Exclude<LaneMessage, { type: "end" }>): void {
    switch (message.type) {
      case "group":
        words.taken += message.payload.byteLength;
        lane.window.came(message.count, message.overMs ?? 0);
        this.#keep(lane, message.count, message.payload);
        return;
      case "gap":
        this.#appender.skip(lane, message.count, message.reason);
        this.#appender.tellGaps(lane);
        return;
      case "wake":
        this.#appender.wake(lane);
        words.woken++;
        return;
      case "quiet":
        this.#appender.release(lane, message.through - lane.base, message.rests);
        words.quieted++;
        return;
      default:
        message satisfies never;
    }
  }

  get unsyncedBytes(): number {
    return this.#unsyncedBytes;
  }

  /** Whether the worker may soon number no further unless a sync reserves more. */
  isShort({ lane }: Feed): boolean {
    return this.#reservations.isShort(lane);
  }

  /**
   * Syncs if that is due; afterwards what was received can be sent. Under `relaxed` it is usually only
   * published, and synced once a second.
   */
  sync(): void {
    const isDue =
      this.#options.durability === "group" || this.#now() - this.#syncedMs >= relaxedSyncMs;
    for (const { lane } of this.#feeds)
      if (lane.end > lane.durable || (isDue && lane.unsynced.length > 0))
        if (isDue) this.#appender.sync(lane);
        else this.#appender.publish(lane);
    if (isDue) this.#syncedMs = this.#now();
    this.#unsyncedBytes = 0;
    this.#room.tell(this.#feeds);
  }

  /**
   * Ends a feed from which nothing more comes. Records that the worker had numbered but not handed over are
   * lost with it.
   */
  end(feed: Feed): void {
    if (!this.#feeds.delete(feed)) return;
    this.#shelf.room.lanes = this.#feeds.size;
    const { lane, words } = feed;
    const handedOver = lane.end;
    const lost = Math.max(handedOver, words.accepted - lane.base) + words.kept;
    lane.receivedThrough(lost, this.#now());
    lane.gaps.add(handedOver + 1, lane.end, "crash");
    const numbered = lane.end;
    lane.receivedThrough(numbered + words.waiting, this.#now());
    lane.gaps.add(numbered + 1, lane.end, "behind");
    lane.words = undefined;
    this.#appender.end(lane);
    this.#shelf.touch();
  }

  /**
   * Reads the lines after the mark; they count as in flight until a mark is confirmed. Throws what the disk
   * throws.
   */
  read(id: string, limits: BatchLimits): LaneBatch | undefined {
    const lane = this.#shelf.lanes.get(id);
    if (lane === undefined) return undefined;
    const batch = this.#readBatch(lane, limits);
    lane.sentThrough = batch?.lastSeq ?? 0;
    return batch;
  }

  /** Notes that central has everything of the lane through `mark`, whatever this side believed. */
  confirm(id: string, mark: number): void {
    const lane = this.#shelf.lanes.get(id);
    if (lane === undefined) return;
    const feed = [...this.#feeds].find((each) => each.lane === lane);
    if (feed !== undefined && mark > lane.durable) this.#leaveForeign(feed);
    else this.#settle(lane, lane.isFound ? mark : Math.min(mark, lane.durable));
    this.#shelf.touch();
    if (
      feed?.lane === lane &&
      lane.pause === undefined && // A lane that no disk knows would be gone with this process, and so would its sums.
      lane.behindMs(this.#now()) > sealBehindMs &&
      lane.durable - lane.mark > batchRecordsMax
    )
      this.#sealAt(feed, lane.end);
  }

  /** Notes that central refuses the one record after the mark: it is set aside, and a gap takes its place. */
  poison(id: string, seq: number, why: string): void {
    const lane = this.#shelf.lanes.get(id);
    if (lane === undefined || lane.mark + 1 !== seq) return;
    const batch = this.#readBatch(lane, { recordsMax: 1, bytesMax: 0 });
    if (batch === undefined || batch.isGap) return;
    const line = Buffer.from(batch.body).toString("utf8");
    const refusedAt = new Date(this.#options.clock.wallMs()).toISOString();
    this.#shelf.sideFiles.keepPoison({ lane: id, seq, refusedAt, why, line });
    lane.gaps.add(seq, seq, "poison");
    this.#shelf.persist();
  }

  facts(): SpoolFacts {
    const { clock } = this.#options;
    const now = { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() };
    const lanes = [...this.#shelf.lanes.values()];
    const sealed = lanes.filter(({ words }) => words === undefined);
    const live = lanes.filter(({ words }) => words !== undefined);
    return {
      balance: this.#shelf.balance(),
      bytes: this.#shelf.usedBytes,
      isBlocking: this.#room.isHeld,
      lanesTotal: lanes.length,
      lanes: [...live, ...sealed.slice(0, sealedToldMax)].map((lane) => lane.facts(now)),
    };
  }

  get isDirty(): boolean {
    return this.#shelf.isDirty;
  }

  persist(): void {
    this.#shelf.persist();
    this.#grant();
  }

  /** Does what is due; called every second or so. */
  tick(): void {
    this.#shelf.tick();
    for (const { lane } of this.#feeds) if (lane.durable < lane.end) this.#appender.tellGaps(lane);
    this.sync();
    this.#grant();
  }

  /** Ends all feeds. Everything received is durable afterwards, as far as the disk allows. */
  close(): void {
    for (const feed of this.#feeds) this.end(feed);
    this.#shelf.persist();
  }

  #now(): number {
    return this.#options.clock.monotonicMs();
  }

  #newLane(base: number, words: LaneWords): Lane {
    const lane = { epoch: this.#options.bootEpoch, no: ++this.#laneNo };
    return new Lane(newLaneMark(lane), base, words);
  }

  #keep(lane: Lane, count: number, payload: Uint8Array): void {
    // A canary is always kept: it comes once a minute in a lane of its own, and would be missed.
    const oneOf = isCanaryLine(payload) ? 1 : this.#sampledOf();
    let from = 0;
    for (const run of lane.sampler.take(count, oneOf, lane.gaps.all.length)) {
      const part = run.count === count ? payload : takeLines(payload, from, run.count);
      from += part.byteLength;
      if (run.isKept) this.#append(lane, run.count, part);
      else this.#appender.skip(lane, run.count, "sampled");
    }
  }

  #append(lane: Lane, count: number, payload: Uint8Array): void {
    this.#unsyncedBytes += payload.byteLength;
    this.#appender.append(lane, { firstSeq: lane.end + 1, count, payload });
  }

  #sampledOf(): number {
    const { whenFull, bytesMax } = this.#options;
    return whenFull === "sample" ? sampledOf(this.#shelf.usedBytes / bytesMax) : 1;
  }

  /**
   * Offers room that has become free. Under `block` no record comes while none is granted, so no message
   * would do it.
   */
  #grant(): void {
    if (!this.#reservations.areBound) return;
    for (const { lane } of this.#feeds) this.#appender.sync(lane);
    this.#room.tell(this.#feeds);
  }

  /**
   * Reads a batch, and makes a gap durable that was found. If the disk refuses that, the batch is sent all the
   * same, for on a full disk only what is sent makes room.
   */
  #readBatch(lane: Lane, limits: BatchLimits): LaneBatch | undefined {
    const batch = readBatch(lane, limits, this.#shelf.damaged);
    if (lane.hasFoundGap && this.#shelf.persist()) lane.hasFoundGap = false;
    return batch;
  }

  #settle(lane: Lane, mark: number): void {
    if (mark > lane.sentThrough) attempt(() => noteGaps(lane, mark, this.#shelf.damaged));
    if (lane.isFound && mark !== lane.sentThrough) lane.leaveUnknown(mark);
    lane.settle(mark);
  }

  /**
   * Ends the lane with number `at` and returns a new lane, to which everything after `at` belongs. The new
   * lane is durable before this one gives up its numbers.
   */
  #sealAt(feed: Feed, at: number): Lane {
    const { lane, words } = feed;
    this.#appender.sync(lane);
    const next = this.#newLane(lane.base + at, words);
    next.granted = lane.granted - at;
    if (lane.window.isAwake) next.window.wake();
    this.#appender.begin(next);
    this.#shelf.lanes.set(next.id, next);
    feed.lane = next;
    lane.words = undefined;
    this.#appender.end(lane);
    return next;
  }

  /**
   * Leaves a lane to which somebody else writes, as a copy of this machine would. Records that are not
   * committed cannot be told there, so a new lane tells that they are lost.
   */
  #leaveForeign(feed: Feed): void {
    const { lane } = feed;
    this.#appender.sync(lane);
    const lost = lane.end - lane.mark;
    const text = `central has different records of lane ${lane.id}: is there a copy of this machine? ${lost} records cannot be told apart from them`;
    this.#options.notice({ code: "spool_conflict", severity: "warning", text });
    const next = this.#sealAt(feed, lane.mark);
    lane.end = lane.durable = lane.mark;
    next.receivedThrough(lost, this.#now());
    next.gaps.add(1, lost, "conflict");
    this.#appender.sync(next);
    lane.settle(lane.mark);
  }
}
