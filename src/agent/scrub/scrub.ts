// Scrubs this host's disk on a schedule: damage is found before a visitor meets it, and repaired. There is
// one pass at a time. Its position is in agent.db, so that a restart continues it. Nothing waits for it, and
// a stop ends it at once.

import type { Json } from "../../core/journal/canonical-json.ts";
import { createMetrics, type Instruments } from "../../base/metrics.ts";
import { sleep } from "../../base/wait.ts";
import { messageOf } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import { atCronTimes } from "./calendar.ts";
import type { WalkPosition, WalkMessage } from "./messages.ts";

/** `left`: it could not be repaired now; whoever needs the file tries again. */
export type Repaired = "repaired" | "left";

export type ScrubPorts = Instruments & {
  readonly documents: {
    get(key: string): unknown;
    put(changes: Readonly<Record<string, Json | null>>): void;
  };
  /** Walks over everything after the position, slowly; `walk` of walker.ts. */
  readonly walk: (
    from: WalkPosition,
    onMessage: (message: WalkMessage) => void,
    stop: AbortSignal,
  ) => Promise<void>;
  /** Checks the index, and replaces a damaged one. */
  readonly checkIndex: () => Promise<
    { readonly kind: "whole" } | { readonly kind: "damaged" | "unchecked"; readonly reason: string }
  >;
  /** Drops a cached body; its entry is a miss from now on. */
  readonly dropBody: (id: number) => Promise<void>;
  /**
   * Looks at the blob again, removes it, and fetches it again for the versions that need it. Never rejects.
   */
  readonly mendBlob: (sha256: Sha256, reason: string) => Promise<Repaired>;
  /** Setting `scrub.schedule`. */
  readonly schedule: string;
  readonly now: () => Date;
  readonly stop: AbortSignal;
  /** Replaced by tests. */
  readonly wait?: typeof sleep;
};

type What = "index" | "bodies" | "blobs";
type Counts = Readonly<Record<What, number>>;

/** A pass as it stands in agent.db and in `status`. */
export type Pass = {
  readonly started_at: string;
  readonly position: WalkPosition;
  readonly checked: Counts;
  readonly bytes: number;
  readonly damaged: Counts;
  readonly repaired: Counts;
  /** Why a part could not be checked. */
  readonly unchecked: Partial<Readonly<Record<What, string>>>;
};

type Ended = Omit<Pass, "position"> & { readonly finished_at: string };
type Stored = { readonly pass: Pass | null; readonly last: Ended | null };

export type ScrubFacts = {
  readonly schedule: string;
  readonly state: "off" | "resting" | "running";
  readonly pass: Pass | null;
  readonly last: Ended | null;
};

export const scrubMetrics = {
  accel_agent_scrub_checked_total: {
    kind: "counter",
    help: "What scrubs have checked: index, bodies (cached, in files), blobs (files of versions).",
    labels: ["what"],
  },
  accel_agent_scrub_read_bytes_total: {
    kind: "counter",
    help: "Bytes that scrubs have read and compared with their digests.",
    labels: [],
  },
  accel_agent_scrub_damaged_total: {
    kind: "counter",
    help: "What scrubs have found damaged: index, bodies, blobs.",
    labels: ["what"],
  },
  accel_agent_scrub_repaired_total: {
    kind: "counter",
    help: "What scrubs have repaired: fetched again, or dropped if it was only cached.",
    labels: ["what"],
  },
  accel_agent_scrub_finished_timestamp_seconds: {
    kind: "gauge",
    help: "When the last whole scrub ended; 0 if none has.",
    labels: [],
  },
  accel_agent_scrub_running: {
    kind: "gauge",
    help: "1 while a scrub is under way.",
    labels: [],
  },
} as const;

const off = "off";
const key = "scrub";
/** The time after a start until an interrupted pass continues: a start has enough to read. */
const resumeAfterMs = 60_000;
/** The time between two writes of the position; what was checked within it is checked again after a crash. */
const noteEveryMs = 30_000;
const none: Counts = { index: 0, bodies: 0, blobs: 0 };

export class Scrub implements AsyncDisposable {
  readonly #ports: ScrubPorts;
  readonly #metrics;
  readonly #own = new AbortController();
  readonly #stop: AbortSignal;
  readonly #calendar: Disposable | undefined;
  #running: Promise<void> | undefined;
  #pass: Pass | null;
  #last: Ended | null;
  #notedMs = -Infinity;

  constructor(ports: ScrubPorts) {
    this.#ports = ports;
    this.#stop = AbortSignal.any([ports.stop, this.#own.signal]);
    this.#metrics = createMetrics(scrubMetrics, ports.registry);
    ({ pass: this.#pass, last: this.#last } = stored(ports.documents.get(key)));
    const finishedMs = this.#last === null ? 0 : Date.parse(this.#last.finished_at);
    this.#metrics.accel_agent_scrub_finished_timestamp_seconds.set(finishedMs / 1_000);
    const damaged = this.#pass !== null && sum(this.#pass.damaged) > 0 ? this.#pass : this.#last;
    if (damaged !== null) this.#warn(damaged);
    this.#calendar =
      ports.schedule === off
        ? undefined
        : atCronTimes(ports.schedule, ports.now, () => this.begin());
    if (this.#pass !== null && ports.schedule !== off) void this.#resume();
  }

  /** Begins a pass unless one is under way; a pass that was cut short continues. Returns at once. */
  begin(): void {
    if (this.#running !== undefined || this.#stop.aborted) return;
    this.#metrics.accel_agent_scrub_running.set(1);
    this.#running = this.#run()
      .catch((error: unknown) =>
        this.#ports.log.error(
          { error: messageOf(error) },
          "a scrub broke off; the next one continues it",
        ),
      )
      .finally(() => {
        this.#running = undefined;
        this.#metrics.accel_agent_scrub_running.set(0);
      });
  }

  facts(): ScrubFacts {
    const idle = this.#ports.schedule === off ? off : "resting";
    const state = this.#running === undefined ? idle : "running";
    return { schedule: this.#ports.schedule, state, pass: this.#pass, last: this.#last };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#own.abort();
    this.#calendar?.[Symbol.dispose]();
    await this.#running;
    if (this.#pass !== null) this.#note();
  }

  async #resume(): Promise<void> {
    if (await (this.#ports.wait ?? sleep)(resumeAfterMs, this.#stop)) this.begin();
  }

  async #run(): Promise<void> {
    const { now, walk, log } = this.#ports;
    this.#pass ??= {
      started_at: now().toISOString(),
      position: { stage: "index" },
      checked: none,
      bytes: 0,
      damaged: none,
      repaired: none,
      unchecked: {},
    };
    log.info({ position: this.#pass.position }, "a scrub begins or continues");
    if (this.#pass.position.stage === "index") await this.#checkIndex();
    if (this.#stop.aborted) return;
    const end = { isDone: false };
    const onMessage = (message: WalkMessage): void => {
      if (message.kind === "done") end.isDone = true;
      else this.#walked(message);
    };
    await walk(this.#pass.position, onMessage, this.#stop);
    if (end.isDone) this.#finish();
  }

  async #checkIndex(): Promise<void> {
    const verdict = await this.#ports.checkIndex();
    // The verdict of a check that a stop interrupted says nothing.
    if (this.#stop.aborted) return;
    const position = { stage: "bodies", after: "" } as const;
    if (verdict.kind === "unchecked") this.#unchecked("index", verdict.reason);
    else this.#checked("index", 1, 0);
    if (verdict.kind === "damaged") {
      this.#damaged("index", verdict.reason);
      this.#repaired("index");
    }
    this.#change((pass) => ({ ...pass, position }));
    this.#note();
  }

  #walked(message: Exclude<WalkMessage, { kind: "done" }>): void {
    switch (message.kind) {
      case "checked":
        this.#checked(message.what, message.count, message.bytes);
        this.#change((pass) => ({ ...pass, position: message.position }));
        if (performance.now() - this.#notedMs >= noteEveryMs) this.#note();
        return;
      case "skipped":
        this.#unchecked(message.what, message.reason);
        return;
      case "damaged body":
        this.#damaged("bodies", `cached body ${message.id}: ${message.reason}`);
        void this.#mend("bodies", async () => {
          await this.#ports.dropBody(message.id);
          return "repaired";
        });
        return;
      case "damaged blob":
        this.#damaged("blobs", `blob ${message.sha256}: ${message.reason}`);
        void this.#mend("blobs", async () => this.#ports.mendBlob(message.sha256, message.reason));
        return;
      default:
        message satisfies never;
    }
  }

  /** Runs a repair. It may outlive the walk and this object, for central may be away for long. */
  async #mend(what: What, action: () => Promise<Repaired>): Promise<void> {
    try {
      const repaired = await action();
      if (repaired === "repaired" && !this.#own.signal.aborted) this.#repaired(what);
    } catch (error) {
      this.#ports.log.warn({ what, error: messageOf(error) }, "damage is not repaired yet");
    }
  }

  #finish(): void {
    const { now, log, health } = this.#ports;
    if (this.#pass === null) return;
    const { position: _, ...rest } = this.#pass;
    const ended: Ended = { ...rest, finished_at: now().toISOString() };
    this.#last = ended;
    this.#pass = null;
    this.#note();
    this.#metrics.accel_agent_scrub_finished_timestamp_seconds.set(now().getTime() / 1_000);
    if (sum(ended.damaged) === 0) health.settle("scrub_damage");
    log.info({ ...ended }, "a scrub has checked everything");
  }

  #checked(what: What, count: number, bytes: number): void {
    this.#metrics.accel_agent_scrub_checked_total.inc({ what }, count);
    this.#metrics.accel_agent_scrub_read_bytes_total.inc(bytes);
    this.#change((pass) => ({
      ...pass,
      checked: more(pass.checked, what, count),
      bytes: pass.bytes + bytes,
    }));
  }

  #unchecked(what: What, reason: string): void {
    this.#ports.log.warn({ what, reason }, "a scrub cannot check this now");
    this.#change((pass) => ({ ...pass, unchecked: { ...pass.unchecked, [what]: reason } }));
  }

  #damaged(what: What, reason: string): void {
    this.#ports.log.error({ what, reason }, "a scrub has found damage");
    this.#metrics.accel_agent_scrub_damaged_total.inc({ what });
    this.#change((pass) => ({ ...pass, damaged: more(pass.damaged, what, 1) }));
    if (this.#pass !== null) this.#warn(this.#pass);
  }

  /** Counts a repair for the pass under way, otherwise for the last one, which did not wait for it. */
  #repaired(what: What): void {
    this.#metrics.accel_agent_scrub_repaired_total.inc({ what });
    const count = <P extends { readonly repaired: Counts }>(pass: P): P => ({
      ...pass,
      repaired: more(pass.repaired, what, 1),
    });
    if (this.#pass !== null) this.#pass = count(this.#pass);
    else if (this.#last !== null) this.#last = count(this.#last);
    const about = this.#pass ?? this.#last;
    if (about !== null) this.#warn(about);
    this.#note();
  }

  /** Raises a warning that stands until a whole scrub finds nothing. */
  #warn({
    started_at,
    damaged,
    repaired,
  }: Pick<Pass, "started_at" | "damaged" | "repaired">): void {
    const found = sum(damaged);
    if (found === 0) return;
    const { index, bodies, blobs } = damaged;
    const parts = `${blobs} files of versions, ${bodies} cached bodies${index > 0 ? ", the cache index" : ""}`;
    const text = `the scrub that began at ${started_at} has found damage: ${parts}; ${Math.min(sum(repaired), found)} of ${found} are repaired`;
    const hint =
      "Check the disk (dmesg, smartctl). Files are fetched again from central, cached bodies from the origin.";
    this.#ports.health.raise("scrub_damage", "warning", text, hint);
  }

  #change(action: (pass: Pass) => Pass): void {
    if (this.#pass !== null) this.#pass = action(this.#pass);
  }

  #note(): void {
    this.#notedMs = performance.now();
    const document: Stored = { pass: this.#pass, last: this.#last };
    try {
      this.#ports.documents.put({ [key]: document });
    } catch (error) {
      this.#ports.log.warn(
        { error: messageOf(error) },
        "the position of a scrub cannot be written",
      );
    }
  }
}

/** Reads the document. `#note` wrote it; agent.db holds nothing else under that key. */
function stored(document: unknown): Stored {
  return (document ?? { pass: null, last: null }) as Stored;
}

function more(counts: Counts, what: What, count: number): Counts {
  return { ...counts, [what]: counts[what] + count };
}

function sum({ index, bodies, blobs }: Counts): number {
  return index + bodies + blobs;
}
