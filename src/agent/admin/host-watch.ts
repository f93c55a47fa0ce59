// Raises health warnings for what runs out on this host: descriptors, places for connections, room to count requests, disk. And for request records that were lost.
//
//   descriptors_low      80 % of the open files that the process may have; settled below 70 %
//   connections_refused  connections were closed unread, because too many were open; settled after ten minutes without
//   limits_full          requests were let through uncounted, because the table of limits.requests was full; settled after ten minutes without
//   disk_low             little is free where the state directory lies, or few more files can be made there; settled when twice as much is
//   records_dropped      request records are proven lost; settled after an hour without a further one

import { readdirSync, readFileSync } from "node:fs";
import type { DiskSpace } from "../../base/disk-space.ts";
import type { Health, Severity } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";

/** The facts of one look; undefined is what cannot be known here. */
export type HostFacts = {
  readonly files: { readonly open: number; readonly max: number } | undefined;
  /** Connections refused since the start. */
  readonly refused: number;
  /** Requests that no rule of limits.requests had room for since the start. */
  readonly uncounted: number;
  /** Records lost since the state began. */
  readonly dropped: number;
  readonly disk: DiskSpace | undefined;
};

export const refusedQuietMs = 600_000;
export const droppedQuietMs = 3_600_000;
const mib = 2 ** 20;

type Code =
  | "descriptors_low"
  | "connections_refused"
  | "limits_full"
  | "disk_low"
  | "records_dropped";
type Rising = { last: number; sinceStart: number; lastMs: number };

export class HostWatch {
  readonly #health: Health;
  readonly #log: Pick<Log, "warn" | "info">;
  readonly #raised = new Set<Code>();
  readonly #refused: Rising = { last: 0, sinceStart: 0, lastMs: -Infinity };
  readonly #uncounted: Rising = { last: 0, sinceStart: 0, lastMs: -Infinity };
  readonly #dropped: Rising;

  /** `dropped`: the records that processes before this one lost. */
  constructor({
    health,
    log,
    dropped = 0,
  }: {
    readonly health: Health;
    readonly log: Pick<Log, "warn" | "info">;
    readonly dropped?: number;
  }) {
    this.#health = health;
    this.#log = log;
    this.#dropped = { last: dropped, sinceStart: 0, lastMs: -Infinity };
  }

  /** Takes the facts of a look; what was not looked at stays as it is. `nowMs` is of a monotonic clock. */
  take({ files, refused, uncounted, dropped, disk }: Partial<HostFacts>, nowMs: number): void {
    if (files !== undefined) this.#takeFiles(files);
    if (disk !== undefined) this.#takeDisk(disk);
    if (refused !== undefined) this.#takeRefused(refused, nowMs);
    if (uncounted !== undefined) this.#takeUncounted(uncounted, nowMs);
    if (dropped !== undefined) this.#takeDropped(dropped, nowMs);
  }

  #takeRefused(refused: number, nowMs: number): void {
    if (rose(this.#refused, refused, nowMs))
      this.#raise(
        "connections_refused",
        "error",
        `${this.#refused.sinceStart} connections of visitors were refused, because too many were open`,
        "See descriptors in `accel-agent doctor`, and accelerator.connections_per_address. docs/floods.md says what to do against a flood.",
      );
    else if (nowMs - this.#refused.lastMs >= refusedQuietMs) this.#settle("connections_refused");
  }

  #takeUncounted(uncounted: number, nowMs: number): void {
    if (rose(this.#uncounted, uncounted, nowMs))
      this.#raise(
        "limits_full",
        "warning",
        `${this.#uncounted.sinceStart} requests were let through uncounted, because the table of limits.requests was full`,
        "More addresses ask than can be counted, or rules remember them for long. docs/limits.md says what takes room, and which metric says how full it is.",
      );
    else if (nowMs - this.#uncounted.lastMs >= refusedQuietMs) this.#settle("limits_full");
  }

  #takeDropped(dropped: number, nowMs: number): void {
    if (rose(this.#dropped, dropped, nowMs))
      this.#raise(
        "records_dropped",
        "error",
        `${this.#dropped.sinceStart} request records were lost since the start; central has them as gaps`,
        "`accel-agent logs backlog` has the reasons. A full spool means that central cannot be reached, or that spool.max is small; on a full disk there is little room for records that central does not take at once.",
      );
    else if (nowMs - this.#dropped.lastMs >= droppedQuietMs) this.#settle("records_dropped");
  }

  #takeFiles({ open, max }: { readonly open: number; readonly max: number }): void {
    if (open >= max * 0.8)
      this.#raise(
        "descriptors_low",
        open >= max * 0.95 ? "error" : "warning",
        `${open} of ${max} files are open; visitors are refused when none is left`,
        "Raise LimitNOFILE= in a drop-in (systemctl edit accel-agent). docs/floods.md says what to do against a flood.",
      );
    else if (open < max * 0.7) this.#settle("descriptors_low");
  }

  #takeDisk({ free, size, files }: DiskSpace): void {
    const least = Math.min(1_024 * mib, Math.max(64 * mib, size * 0.05));
    const fewFiles = files !== undefined && files.free < filesLeast(files.most) ? files : undefined;
    if (fewFiles !== undefined)
      this.#raise(
        "disk_low",
        fewFiles.free < filesLeast(fewFiles.most) / 4 ? "error" : "warning",
        `${fewFiles.free} more files can be made on the disk of the state directory, of ${fewFiles.most}`,
        "Others have made very many small files on this disk: `df -i`, and `du --inodes -x` from its root, say where. Delete them, or give the state directory a disk of its own. Where none can be made, nothing is cached and nothing can be activated.",
      );
    else if (free < least)
      this.#raise(
        "disk_low",
        free < least / 4 ? "error" : "warning",
        `${Math.round(free / mib)} MiB are free on the disk of the state directory`,
        "Make room, or lower cache.disk_max and viewset.disk_max: `accel-agent doctor` adds up what the settings allow. On a full disk the cache goes, nothing new is activated, and little room is left for request records while central is away.",
      );
    else if (
      (free >= 2 * least || free >= size / 2) &&
      (files === undefined || files.free >= 2 * filesLeast(files.most))
    )
      this.#settle("disk_low");
  }

  #raise(code: Code, severity: Severity, text: string, hint: string): void {
    if (!this.#raised.has(code)) this.#log.warn({ code }, text);
    this.#raised.add(code);
    this.#health.raise(code, severity, text, hint);
  }

  #settle(code: Code): void {
    if (!this.#raised.delete(code)) return;
    this.#health.settle(code);
    this.#log.info({ code }, "settled");
  }
}

/** One in a hundred of the files that the disk can have, but never more than ten thousand. */
function filesLeast(most: number): number {
  return Math.min(10_000, most / 100);
}

/** Notes a count. Returns whether it rose since the look before. */
function rose(count: Rising, now: number, nowMs: number): boolean {
  const more = Math.max(0, now - count.last);
  count.last = now;
  if (more === 0) return false;
  count.sinceStart += more;
  count.lastMs = nowMs;
  return true;
}

/**
 * Returns what says how many files this process has open and may have; undefined where /proc does not say. To look one has to open a file: where none is left
 * that fails, and all are open. The limit is read at once, while it can be.
 */
export function openFilesCounter(): () => HostFacts["files"] {
  let max: number | undefined;
  const count = (): HostFacts["files"] => {
    try {
      const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
      if (limit === undefined) return undefined;
      max = Number(limit);
      return { open: readdirSync("/proc/self/fd").length, max };
    } catch (error) {
      const isNoneLeft = error instanceof Error && "code" in error && error.code === "EMFILE";
      return isNoneLeft && max !== undefined ? { open: max, max } : undefined;
    }
  };
  count();
  return count;
}
