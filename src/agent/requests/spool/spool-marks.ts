// spool/marks holds what is not in the segments: through which number central has each lane, gaps, and the
// sums since the state began.
//
//   line 1   crc32 of line 2, 8 hex characters
//   line 2   {"version":1,"tells_unproven":true,"name16":"…","committed":n,"dropped":{reason:n},"lanes":[{"lane":"<epoch>/<no>","begin","mark","counted","committed","dropped","end","gaps":[[from,to,reason]]}]}
//
// Further keys of a later release are left out, and are gone with the next write. What an earlier release must not
// leave out has another version: a file of a later version is set aside, as a damaged one is.
//
// Where `tells_unproven` is missing, a release wrote the file to which numbers of a crash were all `crash`.
//
// The file is replaced whole and synced. What follows line 2 is nothing: on a full disk a larger file is written over (spool-room.ts). `committed` and `dropped` of the first level are the sums of lanes
// that are gone. A mark that is out of date costs nothing, for central answers with its own. Order: a mark or
// gap is durable here before a segment that it makes needless is unlinked, and a lane leaves this file only
// after its segments have left the directory (otherwise it would come back and be counted twice).

import { crc32 } from "node:zlib";
import { join } from "node:path";
import { formatLaneId, parseLaneId } from "../../../wire/request-log.ts";
import { addDropped, gapReasons, parseGapReason, type Dropped, type Gap } from "./gaps.ts";
import type { LaneMark } from "./lane.ts";
import type { SpoolFiles } from "./spool-files.ts";
import type { SpoolRoom } from "./spool-room.ts";
import { parseJson } from "../../../core/journal/json-text.ts";
import { systemCode } from "../../../core/faults.ts";

const marksVersion = 1;

export type SpoolMarks = {
  /** The site that the lanes belong to; undefined if an older release wrote this. */
  readonly name16: string | undefined;
  readonly committed: number;
  readonly dropped: Dropped;
  readonly lanes: readonly LaneMark[];
};

export const noMarks: SpoolMarks = {
  name16: undefined,
  committed: 0,
  dropped: {},
  lanes: [],
};

export const marksPath = (directory: string): string => join(directory, "marks");

export function encodeMarks({ name16, committed, dropped, lanes }: SpoolMarks): Uint8Array {
  const json = JSON.stringify({
    version: marksVersion,
    tells_unproven: true,
    name16,
    committed,
    dropped,
    lanes: lanes.map(({ lane, gaps, ...mark }) => ({
      lane: formatLaneId(lane),
      ...mark,
      gaps: gaps.map(({ from, to, reason }) => [from, to, reason]),
    })),
  });
  return Buffer.from(`${checksum(json)}\n${json}\n`);
}

/** Decodes marks; undefined when the bytes are not what was once written. */
export function decodeMarks(bytes: Uint8Array): SpoolMarks | undefined {
  const [sum, json] = Buffer.from(bytes).toString("utf8").split("\n");
  if (json === undefined || sum !== checksum(json)) return undefined;
  try {
    return parseMarks(JSON.parse(json));
  } catch {
    return undefined;
  }
}

export function readMarks(
  files: SpoolFiles,
  directory: string,
): SpoolMarks | "none" | "damaged" | "newer" {
  try {
    const bytes = files.read(marksPath(directory), 0);
    return decodeMarks(bytes) ?? (isNewer(bytes) ? "newer" : "damaged");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return "none";
    throw error;
  }
}

/** Whether these are whole marks of a later version. */
function isNewer(bytes: Uint8Array): boolean {
  const [sum, json = ""] = Buffer.from(bytes).toString("utf8").split("\n");
  const version = Number(Object(parseJson(json))["version"]);
  return sum === checksum(json) && version > marksVersion;
}

/** Replaces the marks: whatever happens, the file has either the old ones or the new ones, whole. */
export function writeMarks(room: SpoolRoom, directory: string, marks: SpoolMarks): void {
  room.replace(marksPath(directory), encodeMarks(marks));
}

function checksum(json: string): string {
  return crc32(json).toString(16).padStart(8, "0");
}

function parseMarks(raw: unknown): SpoolMarks | undefined {
  if (!isObject(raw) || raw["version"] !== marksVersion || !Array.isArray(raw["lanes"]))
    return undefined;
  const crash = raw["tells_unproven"] === true ? "crash" : "unproven";
  const lanes = raw["lanes"].map((lane) => parseLaneMark(lane, crash));
  const whole = lanes.filter((lane) => lane !== undefined);
  if (whole.length !== lanes.length) return undefined;
  const name16 = raw["name16"];
  return {
    name16: typeof name16 === "string" ? name16 : undefined,
    committed: parseSeq(raw["committed"]),
    dropped: parseDropped(raw["dropped"], crash),
    lanes: whole,
  };
}

/** What `crash` means in a file. */
type CrashReason = "crash" | "unproven";

function parseLaneMark(raw: unknown, crash: CrashReason): LaneMark | undefined {
  if (!isObject(raw) || !Array.isArray(raw["gaps"])) return undefined;
  const lane = parseLaneId(raw["lane"]);
  if (lane === undefined) return undefined;
  return {
    lane,
    begin: parseSeq(raw["begin"]),
    mark: parseSeq(raw["mark"]),
    counted: parseSeq(raw["counted"]),
    committed: parseSeq(raw["committed"]),
    dropped: parseDropped(raw["dropped"], crash),
    end: parseSeq(raw["end"]),
    gaps: raw["gaps"].map((gap) => parseGap(gap, crash)),
  };
}

function parseGap(raw: unknown, crash: CrashReason): Gap {
  const [from, to, written]: readonly unknown[] = Array.isArray(raw) ? raw : [];
  const reason = written === "crash" ? crash : parseGapReason(written);
  return { from: parseSeq(from), to: parseSeq(to), reason };
}

function parseDropped(raw: unknown, crash: CrashReason): Dropped {
  const dropped: Dropped = {};
  if (!isObject(raw)) return dropped;
  for (const reason of gapReasons)
    if (raw[reason] !== undefined)
      addDropped(dropped, { [reason === "crash" ? crash : reason]: parseSeq(raw[reason]) });
  return dropped;
}

function parseSeq(raw: unknown): number {
  if (typeof raw !== "number" || !Number.isSafeInteger(raw) || raw < 0)
    throw new TypeError("no number of records");
  return raw;
}

function isObject(raw: unknown): raw is Record<string, unknown> {
  return raw !== null && typeof raw === "object" && !Array.isArray(raw);
}
