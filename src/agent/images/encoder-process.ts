// The encoder as main sees it: a child process at idle priority that answers within a limit, or is killed. A decoder in C that is given strangers' bytes may loop, take all
// memory or crash, and takes nothing else with it.

import { readFileSync } from "node:fs";
import {
  processPeer,
  ThreadClient,
  type CallOutcome,
  type ProcessPeer,
} from "../../base/thread-client.ts";
import type { EncodeJob, EncodeOutcome, EncoderVersions, FromEncoder, ToEncoder } from "./encoder-messages.ts";

export type Opened =
  | { readonly kind: "opened"; readonly versions: EncoderVersions }
  | { readonly kind: "absent"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string };

/** `killed`: the process died of the picture or was ended for it. */
export type Encoded = {
  readonly outcome: EncodeOutcome | Killed;
  /** Processor time; undefined: it is not known. */
  readonly cpuMs: number | undefined;
};

export type Killed = {
  readonly kind: "killed";
  readonly reason: string;
  /** Whether the picture is the likely cause, rather than a host that had no time for the encoder. */
  readonly isBlamed: boolean;
};

export type EncoderProcessOptions = {
  /** The root file of the process. */
  readonly entry: URL;
  /** The memory that it may write to. */
  readonly memoryMaxBytes: number;
  /** The time that a picture may take. */
  readonly pictureMs: number;
  /** The time until it is loaded. At idle priority a busy host may have none for it. */
  readonly startMs?: number;
};

const niceness = 19;
const startMsDefault = 60_000;
/** A picture is blamed for being late if the process computed for so much of the time. */
const blamedShare = 1 / 2;

export class EncoderProcess implements AsyncDisposable {
  readonly #options: EncoderProcessOptions;
  readonly #child: ThreadClient<ToEncoder, FromEncoder, FromEncoder>;
  #peer: ProcessPeer<ToEncoder> | undefined;

  constructor(options: EncoderProcessOptions) {
    this.#options = options;
    const { entry, memoryMaxBytes } = options;
    const start = processPeer<ToEncoder, FromEncoder>(entry, {
      niceness,
      isIdle: true,
      memoryMaxBytes,
    });
    this.#child = new ThreadClient({
      start: (events) => (this.#peer = start(events)),
      restart: "when asked",
      onMessage: (answer) => this.#child.answerOnly(answer),
    });
  }

  get isRunning(): boolean {
    return this.#child.isRunning;
  }

  /** Undefined: it does not run. */
  get pid(): number | undefined {
    return this.isRunning ? this.#peer?.pid : undefined;
  }

  /** Starts it, where it does not run, and says whether it can encode. Never rejects. */
  async open(): Promise<Opened> {
    const deadlineMs = this.#options.startMs ?? startMsDefault;
    const asked = await this.#child.ask(() => ({ kind: "open" }), { deadlineMs });
    if (asked.kind === "answered" && asked.answer.kind !== "encoded") return asked.answer;
    await this.stop();
    return { kind: "failed", reason: reasonOf(asked, deadlineMs) };
  }

  /** Encodes one picture; one at a time, behind `open`. Never rejects. */
  async encode(job: EncodeJob): Promise<Encoded> {
    const { pictureMs: deadlineMs } = this.#options;
    const before = this.#cpuMs();
    const asked = await this.#child.ask(() => job, { deadlineMs });
    if (asked.kind === "answered" && asked.answer.kind === "encoded") return asked.answer;
    const after = this.#cpuMs();
    const cpuMs = before === undefined || after === undefined ? undefined : after - before;
    const isBlamed = asked.kind !== "late" || (cpuMs ?? 0) >= deadlineMs * blamedShare;
    await this.stop();
    return { outcome: { kind: "killed", reason: reasonOf(asked, deadlineMs), isBlamed }, cpuMs };
  }

  /** Ends it. The next call starts another one. */
  async stop(): Promise<void> {
    await this.#child.end("was ended");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.close();
  }

  #cpuMs(): number | undefined {
    return this.pid === undefined ? undefined : cpuMsOf(this.pid);
  }
}

function reasonOf(asked: CallOutcome<FromEncoder>, deadlineMs: number): string {
  switch (asked.kind) {
    case "late":
      return `the encoder did not answer within ${deadlineMs / 1_000} s`;
    case "gone":
      return `the encoder ${asked.reason}`;
    case "answered":
      return asked.answer.kind === "absent" ? asked.answer.reason : "the encoder is out of step";
    default:
      return asked satisfies never;
  }
}

/** Linux counts in hundredths of a second, whatever the kernel's own clock. */
const tickMs = 10;

/** Returns the processor time that a process took since its start; undefined where /proc does not say. */
function cpuMsOf(pid: number): number | undefined {
  try {
    // Behind the name, which may have blanks and brackets: utime and stime are the 12th and the 13th field (proc_pid_stat(5)).
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1)?.split(" ");
    const ticks = Number(fields?.[11]) + Number(fields?.[12]);
    return Number.isFinite(ticks) ? ticks * tickMs : undefined;
  } catch {
    return undefined;
  }
}
