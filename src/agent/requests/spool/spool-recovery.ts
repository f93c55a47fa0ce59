// Recovers what earlier runs left in the spool, as lanes that nobody writes to any more. It is cheap at any
// backlog, for of each lane only the last segment is read.
//
// A torn tail is cut off. Numbers that were reserved and are not there become a gap that is `unproven`: an
// upper bound of the loss. Damage further in is found when a segment is read for sending. Repeated after
// another crash, recovery finds the same.

import { join } from "node:path";
import type { LaneId } from "../../../wire/request-log.ts";
import {
  decodeSegmentHeader,
  lengthWithoutZeros,
  scanFrames,
  segmentHeaderBytes,
} from "../../../core/journal/spool-frame.ts";
import type { DamageSink } from "./lane-reader.ts";
import { windowMax } from "./lane-window.ts";
import { Lane, newLaneMark, type LaneMark } from "./lane.ts";
import { parseSegmentName, Segment, type SegmentName } from "./segment.ts";
import { attempt, type SpoolFiles } from "./spool-files.ts";
import type { SpoolMarks } from "./spool-marks.ts";

export type RecoveryOptions = {
  /** Whether a lane is this process's own; such lanes are not looked at. */
  readonly isLive: (lane: LaneId) => boolean;
  /** Whether records may have been sent before they were synced. */
  readonly isRelaxed: boolean;
  readonly damaged: DamageSink;
  readonly failed: (path: string, error: unknown) => void;
  /**
   * Called for a lane with missing numbers that no earlier run has told of; at most `atMost` records were
   * lost with their process.
   */
  readonly crashed?: (lane: string, atMost: number) => void;
};

/**
 * Recovers the lanes. Throws what listing the directory throws. `failed` is called with a segment that cannot
 * be looked at; its records are still tried when they are to be sent.
 */
export function recoverLanes(
  files: SpoolFiles,
  directory: string,
  marks: SpoolMarks,
  { isLive, isRelaxed, damaged, failed, crashed }: RecoveryOptions,
): readonly Lane[] {
  const lanes = new Map<string, Lane>();
  const add = (mark: LaneMark): Lane => {
    const lane = new Lane(mark, 0, undefined);
    lanes.set(lane.id, lane);
    return lane;
  };
  for (const mark of marks.lanes) add(mark);
  for (const segment of findSegments(files, directory)) {
    if (isLive(segment.name.lane)) continue;
    // Without a mark, the segments here are the best guess; central corrects it.
    const lane =
      lanes.get(segment.laneId) ?? add(newLaneMark(segment.name.lane, segment.name.firstSeq - 1));
    lane.segments.push(segment);
  }
  for (const lane of lanes.values()) {
    while (lane.segments.length > 0 && isBlank(lane.segments.at(-1))) {
      const blank = lane.segments.pop();
      attempt(() => blank?.unlink());
    }
    const last = lane.segments.at(-1);
    if (last === undefined) continue;
    try {
      const end = recoverTail(lane, last, { damaged, failed });
      if (isRelaxed && isNew(lane, end)) lane.guessedFrom = end + 1;
      if (lane.end > end && isNew(lane, end)) crashed?.(lane.id, lane.end - end);
      lane.gaps.add(end + 1, lane.end, "unproven");
    } catch (error) {
      lane.end = lane.durable = Math.max(lane.end, last.name.firstSeq + windowMax);
      lane.hasUnreadTail = true;
      failed(last.path, error);
    }
  }
  return [...lanes.values()];
}

/** Finds the segments, in the order of their numbers; their ranks are by age. */
function findSegments(files: SpoolFiles, directory: string): readonly Segment[] {
  return files
    .list(directory)
    .flatMap((file) => {
      const name = parseSegmentName(file);
      return name === undefined ? [] : [{ name, ...files.stat(join(directory, file)) }];
    })
    .sort((a, b) => a.modifiedMs - b.modifiedMs || inOrder(a.name, b.name))
    .map(({ name, bytes, modifiedMs }, rank) =>
      Segment.found(files, directory, name, { rank, bytes, modifiedMs }),
    )
    .sort((a, b) => inOrder(a.name, b.name));
}

/**
 * Whether a segment's creation was not finished, so that it never reserved or held anything. The segment
 * before it is the last one then.
 */
function isBlank(segment: Segment | undefined): boolean {
  if (segment === undefined || segment.bytes > segmentHeaderBytes) return false;
  return segment.bytes < segmentHeaderBytes || attempt(() => assertZeros(segment.read(0)));
}

function assertZeros(bytes: Uint8Array): void {
  if (bytes.some((byte) => byte !== 0)) throw new Error("not blank");
}

/** Whether no earlier process has told of the numbers after `end`. */
function isNew(lane: Lane, end: number): boolean {
  return lane.gaps.at(end + 1) === undefined;
}

/**
 * Recovers the lane's last segment and returns the last number that is there. A disk that takes nothing does not keep
 * from knowing what is there.
 */
function recoverTail(
  lane: Lane,
  last: Segment,
  { damaged, failed }: Pick<RecoveryOptions, "damaged" | "failed">,
): number {
  const bytes = last.read(0);
  const header = decodeSegmentHeader(bytes);
  let end = last.name.firstSeq - 1;
  // Damaged bytes may have held the largest possible reservation, unless a later reservation replaces it.
  let reserved = header?.reservedTo ?? end;
  let reservedAt = header === undefined ? -1 : 0;
  let good = segmentHeaderBytes;
  const bad: { at: number; next: number }[] = [];
  for (const found of scanFrames(bytes, segmentHeaderBytes, { reachesEnd: true })) {
    if (found.kind === "bad") {
      bad.push(found);
      continue;
    }
    good = found.next;
    const { firstSeq, count } = found.frame;
    if (count === 0) [reserved, reservedAt] = [firstSeq - 1, found.at];
    else end = Math.max(end, firstSeq + count - 1);
  }
  const damages = bad.filter(({ next }) => next <= good);
  if (header === undefined && bytes.byteLength >= segmentHeaderBytes)
    damages.push({ at: 0, next: segmentHeaderBytes });
  for (const { at, next } of damages) damaged(last, at, bytes.subarray(at, next));
  if (damages.some(({ at }) => at > reservedAt)) reserved = Math.max(reserved, end + windowMax);
  // The tail is synced, for otherwise a power loss could take back records that central has by then, and a
  // gap would be counted in their place. The start that told of the crash has done so already: a host that
  // starts again and again must not sync at each start all that it ever left.
  const isTorn = bad.some(({ next }) => next > good) || bytes.byteLength < good;
  const isSecured = lane.gaps.at(end + 1)?.reason === "unproven" && !isTorn;
  if (!isSecured) {
    const tornTo = isTorn ? lengthWithoutZeros(bytes) : good;
    try {
      last.secureThrough(Math.min(good, bytes.byteLength), tornTo);
    } catch (error) {
      failed(last.path, error);
    }
  }
  const known = Math.max(end, lane.end);
  lane.end = lane.durable = Math.max(known, reserved);
  return end;
}

/** Orders segments of one lane by their numbers; segments of different lanes may come in any order. */
function inOrder(a: SegmentName, b: SegmentName): number {
  return a.firstSeq - b.firstSeq || a.part - b.part;
}
