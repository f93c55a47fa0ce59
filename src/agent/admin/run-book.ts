// What a process of the agent leaves behind for the next one, in agent.db: whether it ended in good order, and which warnings were in force. From that the next
// one tells how the one before ended, and since when a warning is in force that it finds at its start.
//
//   document "run"   the process that noted last (run-ends.ts), with its warnings; the ends that nobody asked for, counted by cause, and the newest of them
//   last-end         a file of the unit: a line for each end, until a process has noted them. It begins with an empty line, whose block of the disk it keeps: so the
//                    ends of a full disk have room. In a file that is full the newest line takes the place of the last: a stop in good order is the last thing known, too

import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { kernelBootId } from "../../base/boot-id.ts";
import type { KnownWarning, Recalled } from "../../base/health.ts";
import { createMetrics, type Instruments } from "../../base/metrics.ts";
import { messageOf } from "../../core/faults.ts";
import type { Documents } from "../link/agent-db.ts";
import {
  endsWarning,
  loggedTime,
  newestEnds,
  uncleanEnds,
  type AgentRun,
  type UncleanEnd,
} from "./run-ends.ts";
import {
  endCauses,
  parseServiceEnds,
  type EndCause,
  type ServiceEnd,
} from "../../base/service-ends.ts";

export const runMetrics = {
  accel_agent_unclean_ends_total: {
    kind: "counter",
    help: "How often the agent ended without being told to, over all starts with this state directory, by cause: watchdog, signal, exit, memory, timeout, start (it failed before it served), host (it went down) or unknown (systemd did not say, or is not there).",
    labels: ["cause"],
  },
} as const;

export type RunBookOptions = Instruments & {
  readonly documents: Documents;
  readonly stateDir: string;
  readonly now: () => Date;
  /** systemd's $INVOCATION_ID; undefined without systemd. */
  readonly invocation: string | undefined;
  /** Aborted where this process was told to end, or has handed over. */
  readonly stop: AbortSignal;
};

/** The time between looks at whether the warnings are others than those that were noted. */
export const notePeriodMs = 5_000;
/** The book is written so often where nothing changes: so far the next process knows what was. */
const seenMs = 60_000;
/** Behind a longer pause nobody knows whether what is found again was there all the time. */
const pauseMs = 15 * 60_000;
/** As many of each kind as the unit's file has room for (4 KiB, and a line has 50 bytes and more): a repeated reading finds each of them. */
const endsKept = 90;

/** A start that failed for an hour is no reason for a page of the log. */
const endsLogged = 10;

type Book = {
  readonly run: AgentRun;
  readonly warnings: readonly KnownWarning[];
  readonly counts: Readonly<Partial<Record<EndCause, number>>>;
  readonly ends: readonly UncleanEnd[];
};

export class RunBook implements Disposable {
  readonly #options: RunBookOptions;
  readonly #own: Pick<AgentRun, "invocation" | "boot">;
  readonly #counts: Book["counts"];
  readonly #ends: readonly UncleanEnd[];
  readonly #endsPath: string;
  #served = false;
  /** Whether the unit's file has lines that are noted only by the next writing. */
  #isFileRead = false;
  #noted = { warnings: "", atMs: -Infinity };
  #isFailing = false;

  /** Reads what the process before left, warns of how it ended, and notes that this one runs. */
  constructor(options: RunBookOptions) {
    this.#options = options;
    const { documents, health, invocation, log, now, registry, stateDir } = options;
    this.#own = { invocation: invocation ?? null, boot: kernelBootId() ?? null };
    this.#endsPath = join(stateDir, "last-end");
    const book = parseBook(documents.get("run"));
    const at = now();
    // What was noted before, and could not be taken out of the file, comes again.
    const known = new Set(book?.ends.map(({ invocation }) => invocation));
    const said = this.#readEnds().filter(({ invocation }) => !known.has(invocation));
    const found =
      book === undefined ? [] : uncleanEnds(book.run, { said, boot: this.#own.boot, at });
    this.#counts = counted(book?.counts ?? {}, found);
    this.#ends = newestEnds([...(book?.ends ?? []), ...found], endsKept);
    const { accel_agent_unclean_ends_total: total } = createMetrics(runMetrics, registry);
    for (const cause of endCauses) total.inc({ cause }, this.#counts[cause] ?? 0);
    for (const end of found.slice(-endsLogged))
      log.warn({ cause: end.cause, ...loggedTime(end) }, `the agent before: ${end.how}`);
    const recalled = book && recalledOf(book, at);
    if (recalled !== undefined) health.recall(recalled);
    this.#warn();
    this.note();
  }

  /** Notes that this process serves: what ends it from now on is no start that failed. */
  serves(): void {
    this.#served = true;
    this.#write(null);
  }

  /** Notes warnings that have changed, and from time to time that this process is there; warns no longer of ends of long ago. */
  note(): void {
    this.#warn();
    const atMs = this.#options.now().getTime();
    const warnings = JSON.stringify(this.#options.health.known());
    if (warnings === this.#noted.warnings && Math.abs(atMs - this.#noted.atMs) < seenMs) return;
    this.#write(null);
    if (!this.#isFailing) this.#noted = { warnings, atMs };
  }

  /** Notes the end, where this process was told to end. */
  [Symbol.dispose](): void {
    if (this.#options.stop.aborted) this.#write(this.#options.now().toISOString());
  }

  #warn(): void {
    const { health, now } = this.#options;
    const warning = endsWarning(this.#ends, now());
    if (warning === undefined) return health.settle("unclean_end");
    health.raise(
      "unclean_end",
      warning.severity,
      warning.text,
      `\`journalctl -u accel-agent\` around that time says what it met, and \`accel-agent diagnostics\` collects what a report needs.${warning.isCostly ? " `accel-agent logs backlog` says how many request records it may have cost." : ""}`,
      "",
      warning.began,
    );
  }

  /** Reads what the unit has written since; nothing where there is no file. */
  #readEnds(): readonly ServiceEnd[] {
    this.#isFileRead = true;
    try {
      return parseServiceEnds(readFileSync(this.#endsPath, "utf8"));
    } catch {
      return [];
    }
  }

  /** Leaves an empty line in the unit's file. Where that fails, its lines are found again at the next start, and known by then. */
  #emptyFile(): void {
    this.#isFileRead = false;
    try {
      const fd = openSync(this.#endsPath, constants.O_CREAT | constants.O_WRONLY, 0o600);
      try {
        writeSync(fd, "\n", 0);
        ftruncateSync(fd, 1);
      } finally {
        closeSync(fd);
      }
    } catch {
      // The disk is full, and there was no file: the unit makes it when there is room.
    }
  }

  #write(ended: string | null): void {
    const { documents, health, log, now } = this.#options;
    try {
      const run = { ...this.#own, seen: now().toISOString(), served: this.#served, ended };
      const [counts, ends] = [{ ...this.#counts }, this.#ends.map((end) => ({ ...end }))];
      const warnings = health.known().map((warning) => ({ ...warning }));
      documents.put({ run: { run, warnings, counts, ends } });
      this.#isFailing = false;
      if (this.#isFileRead) this.#emptyFile();
    } catch (error) {
      if (!this.#isFailing)
        log.warn(
          { error: messageOf(error) },
          "agent.db could not be written: the next start will not know how this process ended",
        );
      this.#isFailing = true;
    }
  }
}

/** Returns what was known shortly before; undefined where that is too long ago, or a clock was set. */
function recalledOf({ run, warnings }: Book, at: Date): Recalled | undefined {
  const seen = run.ended ?? run.seen;
  const goneMs = at.getTime() - Date.parse(seen);
  return goneMs >= 0 && goneMs <= pauseMs ? { warnings, seen } : undefined;
}

function counted(counts: Book["counts"], ends: readonly UncleanEnd[]): Book["counts"] {
  const sums = { ...counts };
  for (const { cause } of ends) sums[cause] = (sums[cause] ?? 0) + 1;
  return sums;
}

/** Reads the document as `#write` wrote it; undefined where there is none, or one of another shape. */
function parseBook(raw: unknown): Book | undefined {
  const book = raw as Partial<Book> | undefined;
  const { run, warnings, counts, ends } = book ?? {};
  if (typeof run?.seen !== "string" || typeof counts !== "object") return undefined;
  if (!Array.isArray(warnings) || !Array.isArray(ends)) return undefined;
  // A release that does not know it noted only processes that served.
  return { run: { ...run, served: run.served ?? true }, warnings, counts, ends };
}
