// All lanes with their segments on disk: they are found at the start, kept within the limit, and deleted once
// central has them.
//
// Order on disk: a segment is unlinked only after spool/marks says that it is needless; a lane's mark goes
// only after all of its segments.

import { messageOf } from "../../../core/faults.ts";
import { segmentHeaderBytes } from "../../../core/journal/spool-frame.ts";
import { ForeignLanes } from "./foreign-lanes.ts";
import { addDropped, splitUnproven, totalDropped, type Dropped, type GapReason } from "./gaps.ts";
import { sumBalances, type Lane } from "./lane.ts";
import { Segment } from "./segment.ts";
import { SideFiles } from "./side-files.ts";
import { attempt, type SpoolFiles } from "./spool-files.ts";
import { marksPath, noMarks, readMarks, writeMarks, type SpoolMarks } from "./spool-marks.ts";
import type { Balance, CrashLoss, SpoolInit, SpoolNotice } from "./spool-messages.ts";
import { recoverLanes } from "./spool-recovery.ts";
import { SpoolRoom } from "./spool-room.ts";

/**
 * Options of a shelf. Lanes found of another `name16` are never sent. Lanes of this `bootEpoch` are this
 * process's own and are not recovered.
 */
export type ShelfOptions = Pick<
  SpoolInit,
  "directory" | "bytesMax" | "whenFull" | "durability" | "name16" | "bootEpoch"
> & {
  readonly files: SpoolFiles;
  readonly clock: { wallMs(): number; monotonicMs(): number };
  readonly notice: (notice: SpoolNotice) => void;
  /** Called once at most, when the process before ended without closing its lanes. */
  readonly crashed?: (loss: CrashLoss) => void;
};

/** The most lanes that are named of those that a crash left. */
const lanesNamedMax = 20;

type LaneLoss = { readonly lane: string; readonly atMost: number };

function lossOf(losses: readonly LaneLoss[]): CrashLoss {
  return {
    lanes: losses.slice(0, lanesNamedMax).map(({ lane }) => lane),
    lanesTotal: losses.length,
    atMost: losses.reduce((sum, { atMost }) => sum + atMost, 0),
  };
}

/** The time after the last drop during which health says that the spool is full. */
const fullToldMs = 60_000;
/** The time without a refusal after which the disk is said to work again. */
const worksToldMs = 20_000;

export class LaneShelf {
  readonly lanes = new Map<string, Lane>();
  readonly sideFiles: SideFiles;
  readonly room: SpoolRoom;
  readonly #options: ShelfOptions;
  /** The sums of lanes that are gone. */
  #gone: { committed: number; dropped: Dropped } = { committed: 0, dropped: {} };
  readonly #foreign: ForeignLanes;
  #usedBytes = 0;
  #rank = 0;
  /** Whether recovery is complete. Marks that are written before would forget what could not be read yet. */
  #isRecovered = false;
  #isDirty = false;
  #areMarksRefused = false;
  #droppedAtMs: number | undefined;
  #refusedAtMs = -Infinity;
  /** Something was written after the last refusal, and that is not told yet. */
  #worksAgain = false;

  constructor(options: ShelfOptions) {
    this.#options = options;
    this.sideFiles = new SideFiles(options.files, options.directory);
    this.room = new SpoolRoom(options.files, options.directory, options.bytesMax);
    this.#foreign = new ForeignLanes({ ...options, room: this.room });
  }

  /**
   * Recovers what earlier runs left. If the disk refuses, the shelf is empty, and recovery is tried again
   * with each tick.
   */
  recover(): void {
    const { files, directory, name16, bootEpoch, durability } = this.#options;
    const crashed: LaneLoss[] = [];
    try {
      files.ensureDirectory(directory);
      const marks = this.#readMarks();
      const lanes = recoverLanes(files, directory, marks, {
        isRelaxed: durability === "relaxed",
        isLive: ({ epoch }) => epoch === bootEpoch,
        damaged: this.damaged,
        failed: (path, error) => this.disk(error, path),
        crashed: (lane, atMost) => void crashed.push({ lane, atMost }),
      });
      if (marks.name16 !== undefined && marks.name16 !== name16)
        this.#foreign.setAside(marks, lanes);
      this.#gone = { committed: marks.committed, dropped: { ...marks.dropped } };
      for (const lane of lanes) this.lanes.set(lane.id, lane);
      this.#rank += lanes.reduce((sum, { segments }) => sum + segments.length, 0);
      this.#isRecovered = true;
      this.persist();
      this.#foreign.tell();
      if (crashed.length > 0) this.#options.crashed?.(lossOf(crashed));
    } catch (error) {
      this.disk(error, directory);
    }
    this.#recount();
  }

  readonly damaged = (segment: Segment, at: number, bytes: Uint8Array): void => {
    this.sideFiles.keepDamaged(segment.path, at, bytes);
    const text = `${bytes.byteLength} bytes of ${segment.path} are damaged`;
    this.#options.notice({ code: "spool_damaged", severity: "warning", text });
  };

  /** Tells the operator that the disk refused something, or with undefined that it works again. */
  disk(error: unknown, path = this.#options.directory): void {
    this.#worksAgain = error === undefined;
    if (error === undefined) return this.#tellWorks();
    this.#refusedAtMs = this.#options.clock.monotonicMs();
    const text = `${path}: ${messageOf(error)}`;
    this.#options.notice({ code: "spool_failing", severity: "error", text });
  }

  /** On a full disk something small finds room now and then: it works when nothing was refused for a while. */
  #tellWorks(): void {
    const now = this.#options.clock.monotonicMs();
    if (!this.#worksAgain || now - this.#refusedAtMs < worksToldMs) return;
    this.#worksAgain = false;
    this.#options.notice({ code: "spool_failing", severity: "error", text: undefined });
  }

  nextRank(): number {
    this.#recount(); // A segment begins, and the one before may have been cut.
    return this.#rank++;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  balance(): Balance {
    const { committed } = this.#gone;
    const { dropped, unproven, unknown } = splitUnproven(this.#gone.dropped);
    const accepted = committed + totalDropped(dropped);
    const gone = { accepted, committed, spooled: 0, inMemory: 0, dropped, unproven, unknown };
    return sumBalances([gone, ...[...this.lanes.values()].map((lane) => lane.balance())]);
  }

  /** Notes that the marks have changed and are to be persisted soon. */
  touch(): void {
    this.#isDirty = true;
  }

  get isDirty(): boolean {
    return this.#isDirty;
  }

  /**
   * Writes the marks, then unlinks the segments that they make needless. Returns false when the disk refused
   * the marks; nothing is unlinked then.
   */
  persist(): boolean {
    if (!this.#isRecovered) return false;
    try {
      writeMarks(this.room, this.#options.directory, this.#marks());
      this.#isDirty = false;
      if (this.#areMarksRefused) this.disk(undefined);
      this.#areMarksRefused = false;
    } catch (error) {
      this.#areMarksRefused = true;
      this.disk(error);
      return false;
    }
    try {
      this.#release();
    } catch (error) {
      this.disk(error);
      this.#isDirty = true;
    }
    this.#recount();
    return true;
  }

  /**
   * Makes room for this many bytes within the limit, or with `undefined` for whatever a full disk takes, by
   * dropping the oldest segments that may be dropped. Returns whether there is room.
   */
  makeRoom(bytes: number | undefined): boolean {
    const { whenFull } = this.#options;
    const mayDrop = whenFull === "drop_oldest" || whenFull === "sample";
    if (bytes === undefined) return mayDrop && this.#dropOldest("disk_full");
    // Under `block` the room was kept for the record, which may be larger than was reckoned.
    const fits = (): boolean =>
      whenFull === "block" || this.#usedBytes + bytes <= this.#options.bytesMax;
    if (!fits() && this.#isDirty) this.persist();
    while (!fits()) {
      if (mayDrop && this.#dropOldest("dropped_oldest")) continue;
      this.#tellFull();
      return false;
    }
    this.#usedBytes += bytes;
    return true;
  }

  /** Does what is due; called every second or so. */
  tick(): void {
    const now = this.#options.clock.monotonicMs();
    if (!this.#isRecovered) this.recover();
    this.#foreign.tick(now);
    this.room.refill();
    this.#tellWorks();
    if (this.#droppedAtMs === undefined || now - this.#droppedAtMs < fullToldMs) return;
    this.#droppedAtMs = undefined;
    this.#options.notice({ code: "spool_full", severity: "warning", text: undefined });
  }

  /** Warns that a segment was dropped to make room, or a record that found none. */
  #tellFull(): void {
    this.#droppedAtMs = this.#options.clock.monotonicMs();
    const text = "request records are dropped because the spool or its disk is full";
    this.#options.notice({ code: "spool_full", severity: "warning", text });
  }

  #readMarks(): SpoolMarks {
    const { files, directory, clock } = this.#options;
    const marks = readMarks(files, directory);
    if (marks === "none") return noMarks;
    if (marks !== "damaged" && marks !== "newer") return marks;
    this.sideFiles.moveDamaged(marksPath(directory), clock.wallMs());
    const found = marks === "newer" ? "was written by a newer release and set aside" : "is damaged";
    const text = `${marksPath(directory)} ${found}: the sums begin again at zero, and central is asked for the marks`;
    this.#options.notice({ code: "spool_damaged", severity: "warning", text });
    return noMarks;
  }

  #marks(): SpoolMarks {
    const lanes = [...this.lanes.values()].map((lane) => lane.toMark());
    return { name16: this.#options.name16, ...this.#gone, lanes };
  }

  #release(): void {
    const { files, directory } = this.#options;
    const done = [...this.lanes.values()].filter((lane) => lane.isDone);
    for (const lane of this.lanes.values()) {
      const needless = lane.segments.filter(
        (segment) => !segment.isOpen && lane.lastSeqOf(segment) <= lane.mark,
      );
      for (const segment of needless) this.#unlink(lane, segment);
    }
    if (done.length === 0) return;
    files.syncDirectory(directory);
    for (const lane of done) {
      const { committed, dropped, unproven, unknown } = lane.balance();
      this.#gone.committed += committed;
      addDropped(this.#gone.dropped, { ...dropped, unproven, unknown });
      this.lanes.delete(lane.id);
    }
    this.#isDirty = true;
  }

  #dropOldest(reason: GapReason): boolean {
    const found = this.#oldest(false) ?? this.#oldest(true);
    if (found === undefined) return false;
    const { lane, segment } = found;
    lane.gaps.add(Math.max(segment.name.firstSeq, lane.mark + 1), lane.lastSeqOf(segment), reason);
    this.#tellFull();
    // A full disk cannot take the marks with the gap; then a later segment of the lane shows the gap as well.
    const isLast = lane.segments.at(-1) === segment;
    if (!this.persist() && isLast) return false;
    try {
      if (isLast) this.#leaveTrace(lane, segment);
      this.#unlink(lane, segment);
    } catch (error) {
      this.disk(error);
      return false;
    }
    this.#recount();
    return true;
  }

  /**
   * Replaces a lane's last segment by an empty one that reserves all its numbers. Otherwise only the marks
   * would know of the lane and its loss, and they would forget both. A full disk may have no room for it.
   */
  #leaveTrace(lane: Lane, { name }: Segment): void {
    const { files, directory } = this.#options;
    const { epoch, no: laneNo } = lane.lane;
    const reservedTo = lane.words === undefined ? lane.end : Math.max(lane.end, lane.granted);
    const header = { epoch, laneNo, firstSeq: name.firstSeq, reservedTo };
    const at = { part: name.part + 1, rank: this.nextRank(), room: this.room };
    attempt(() => {
      const trace = Segment.create(files, directory, header, at);
      trace.seal();
      lane.segments.push(trace);
    });
  }

  #oldest(surely: boolean): { lane: Lane; segment: Segment } | undefined {
    return [...this.lanes.values()]
      .flatMap((lane) => lane.segments.map((segment) => ({ lane, segment })))
      .filter(({ segment }) => !segment.isOpen && segment.bytes > segmentHeaderBytes)
      .filter(({ lane, segment }) => !lane.isPinned(segment, surely))
      .reduce<{ lane: Lane; segment: Segment } | undefined>(
        (oldest, each) =>
          oldest === undefined || each.segment.rank < oldest.segment.rank ? each : oldest,
        undefined,
      );
  }

  #unlink(lane: Lane, segment: Segment): void {
    segment.release(this.room);
    const at = lane.segments.indexOf(segment);
    if (at >= 0) lane.segments.splice(at, 1);
  }

  #recount(): void {
    this.#usedBytes = [...this.lanes.values()]
      .flatMap(({ segments }) => segments)
      .reduce((sum, { bytes }) => sum + bytes, 0);
  }
}
