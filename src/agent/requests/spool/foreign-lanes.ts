// Records that were spooled under another name of the site, because its credentials were changed and the
// state directory was kept. They belong to another deployment, so they are never sent under the new name.
// They are counted as dropped, and their segments are set aside for the operator in spool/foreign/.
//
// At most as many bytes as the spool may have are kept there; the oldest segments go first. Order:
// spool/marks states the loss under the old name, then the segments move, then the marks take the new name.
// Repeated after a crash, it has the same result.

import { basename, join } from "node:path";
import type { Lane } from "./lane.ts";
import type { Segment } from "./segment.ts";
import { unlinkIfThere, type SpoolFiles } from "./spool-files.ts";
import { writeMarks, type SpoolMarks } from "./spool-marks.ts";
import type { SpoolNotice } from "./spool-messages.ts";
import type { SpoolRoom } from "./spool-room.ts";

const lookedAtMs = 60_000;

export type ForeignOptions = {
  readonly files: SpoolFiles;
  readonly directory: string;
  readonly bytesMax: number;
  readonly room: SpoolRoom;
  readonly notice: (notice: SpoolNotice) => void;
};

export class ForeignLanes {
  readonly #options: ForeignOptions;
  readonly #path: string;
  #isTold = false;
  #lookedMs = 0;

  constructor(options: ForeignOptions) {
    this.#options = options;
    this.#path = join(options.directory, "foreign");
  }

  /**
   * Sets the lanes aside; afterwards they are settled and have no segments. Throws what the disk throws;
   * nothing may be sent then.
   */
  setAside(marks: SpoolMarks, lanes: readonly Lane[]): void {
    const { files, directory, room } = this.#options;
    for (const lane of lanes) lane.gaps.add(lane.mark + 1, lane.end, "foreign");
    writeMarks(room, directory, { ...marks, lanes: lanes.map((lane) => lane.toMark()) });
    for (const lane of lanes) {
      for (const segment of lane.segments) this.#move(segment);
      lane.segments.length = 0;
      lane.guessedFrom = 0;
      lane.settle(lane.end);
    }
    files.syncDirectory(directory);
  }

  /** Warns while anything is there. */
  tell(): void {
    const text = `${this.#path} holds request records that were spooled under other credentials`;
    const isThere = this.#kept().length > 0;
    if (isThere === this.#isTold) return;
    this.#isTold = isThere;
    const severity = "warning";
    this.#options.notice({ code: "spool_foreign", severity, text: isThere ? text : undefined });
  }

  tick(nowMs: number): void {
    if (!this.#isTold || nowMs - this.#lookedMs < lookedAtMs) return;
    this.#lookedMs = nowMs;
    this.tell();
  }

  #move(segment: Segment): void {
    const { files } = this.#options;
    files.ensureDirectory(this.#path);
    this.#makeRoom(segment.bytes);
    segment.seal();
    files.rename(segment.path, join(this.#path, basename(segment.path)));
    files.syncDirectory(this.#path);
  }

  #makeRoom(bytes: number): void {
    const { files, bytesMax } = this.#options;
    const kept = this.#kept().map((name) => {
      const path = join(this.#path, name);
      return { path, ...files.stat(path) };
    });
    let used = kept.reduce((sum, each) => sum + each.bytes, bytes);
    for (const each of kept.sort((a, b) => a.modifiedMs - b.modifiedMs)) {
      if (used <= bytesMax) return;
      unlinkIfThere(files, each.path);
      used -= each.bytes;
    }
  }

  #kept(): readonly string[] {
    try {
      return this.#options.files.list(this.#path);
    } catch {
      return []; // Nothing was ever set aside, or the disk refuses to list it.
    }
  }
}
