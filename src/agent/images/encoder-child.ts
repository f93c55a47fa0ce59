// The encoder as main sees it: a child process at idle priority that answers within a limit, or is killed. A decoder in C that is given strangers' bytes may loop, take all
// memory or crash, and takes nothing else with it.

import { readFileSync } from "node:fs";
import {
  processPeer,
  ThreadClient,
  type CallOutcome,
  type ProcessPeer,
} from "../../base/thread-client.ts";
import type {
  EncodeJob,
  EncodeOutcome,
  EncoderVersions,
  FromEncoder,
  ToEncoder,
} from "./encoder-messages.ts";

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
  /** Resident memory, which is looked at every 50 ms: it is exceeded by what is taken in between. */
  readonly memoryMaxBytes: number;
  /** The processor time that a picture may take. */
  readonly pictureMs: number;
  /** The time that it may take by the clock: at idle priority a busy host has long none for it. */
  readonly waitMs: number;
  /** The time until it is loaded. At idle priority a busy host may have none for it. */
  readonly startMs?: number | undefined;
};

const niceness = 19;
const lookMs = 50;
/** The allocator would keep a pool for each thread, and in each what the largest picture took. */
const allocatorEnv = { MALLOC_ARENA_MAX: "1" };
const startMsDefault = 60_000;
/** A picture is blamed for being late if the process computed for so much of the time. */
const blamedShare = 1 / 2;

export class EncoderProcess implements AsyncDisposable {
  readonly #options: EncoderProcessOptions;
  readonly #child: ThreadClient<ToEncoder, FromEncoder, FromEncoder>;
  #peer: ProcessPeer<ToEncoder> | undefined;

  constructor(options: EncoderProcessOptions) {
    this.#options = options;
    const start = processPeer<ToEncoder, FromEncoder>(options.entry, {
      niceness,
      isExpendable: true,
      env: allocatorEnv,
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
    const { pictureMs, waitMs: deadlineMs } = this.#options;
    const began = this.#look();
    let last = began;
    const watching = setInterval(() => {
      last = this.#look() ?? last;
      this.#judge(last, (last?.cpuMs ?? 0) - (began?.cpuMs ?? 0));
    }, lookMs).unref();
    const asked = await this.#child.ask(() => job, { deadlineMs });
    clearInterval(watching);
    if (asked.kind === "answered" && asked.answer.kind === "encoded") return asked.answer;
    const ended = this.#look() ?? last;
    const cpuMs =
      ended === undefined || began === undefined ? undefined : ended.cpuMs - began.cpuMs;
    const isBlamed = asked.kind !== "late" || (cpuMs ?? 0) >= pictureMs * blamedShare;
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

  /** Ends the process where it takes too much for one picture. */
  #judge(usage: Usage | undefined, cpuMs: number): void {
    if (usage === undefined) return;
    const { memoryMaxBytes, pictureMs } = this.#options;
    const [mib, mostMib] = [usage.memoryBytes, memoryMaxBytes].map((n) => Math.round(n / 2 ** 20));
    if (usage.memoryBytes > memoryMaxBytes)
      void this.#child.end(`took ${mib} MiB, and at most ${mostMib} are allowed`);
    else if (cpuMs > pictureMs)
      void this.#child.end(`took more than ${pictureMs / 1_000} s of processor time`);
  }

  #look(): Usage | undefined {
    return this.pid === undefined ? undefined : usageOf(this.pid);
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

/** What a process has taken. */
type Usage = { readonly cpuMs: number; readonly memoryBytes: number };

/** Linux counts in hundredths of a second, whatever the kernel's own clock. */
const tickMs = 10;

/** Undefined where /proc does not say. */
function usageOf(pid: number): Usage | undefined {
  try {
    // Behind the name, which may have blanks and brackets: utime and stime are the 12th and the 13th field (proc_pid_stat(5)).
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1)?.split(" ");
    const cpuMs = (Number(fields?.[11]) + Number(fields?.[12])) * tickMs;
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    const memoryBytes = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
    return Number.isFinite(cpuMs + memoryBytes) ? { cpuMs, memoryBytes } : undefined;
  } catch {
    return undefined;
  }
}
