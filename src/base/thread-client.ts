// A thread or child process as its client sees it: numbered calls with deadlines, what its death means for
// them, and whether it is started again.
//
// Each client names its restart rule. What may be expected of a call (an answer, no answer in time, a thread
// that is gone) is a value. `ask` rejects only with what the far end refused by `fail`, and with what a
// message cannot carry.

import { fork } from "node:child_process";
import { setPriority } from "node:os";
import { Worker, type Transferable } from "node:worker_threads";
import { messageOf } from "../core/faults.ts";
import { Ending } from "./ending.ts";
import { heapLimits } from "./heap-limits.ts";
import { PreparedThreads } from "./prepared-threads.ts";
import { sleep } from "./wait.ts";

/**
 * Says why a thread no longer runs, as the end of a sentence ("ended with code 1: out of memory"). `cause` is
 * what it threw.
 */
export type Death = { readonly reason: string; readonly cause?: Error | undefined };

/** The far end. */
export type Peer<Told> = {
  /** Throws for a message that cannot be cloned. */
  post(message: Told, transfer: readonly Transferable[]): void;
  /** Ends the peer wherever it is. Resolves when that is done. */
  end(): Promise<void>;
};

export type PeerEvents<Heard> = {
  readonly heard: (message: Heard) => void;
  /** Called once, when the peer no longer runs. */
  readonly gone: (death: Death) => void;
};

export type StartPeer<Told, Heard> = (events: PeerEvents<Heard>) => Peer<Told>;

export type ThreadOptions = {
  readonly name: string;
  readonly workerData?: unknown;
  readonly transferList?: readonly Transferable[];
  /** The limit of the old part of its heap. */
  readonly heapMiB?: number;
  /** Whether the process may end while the thread runs. */
  readonly isUnref?: boolean;
};

/** The file of a thread, or threads of it that may have been started before. */
export type ThreadEntry = URL | PreparedThreads;

/** A thread of this program. */
export function threadPeer<Told, Heard>(
  entry: ThreadEntry,
  options: ThreadOptions,
): StartPeer<Told, Heard> {
  const { isUnref = false } = options;
  return ({ heard, gone }) => {
    const worker = startThread(entry, options);
    let cause: Error | undefined;
    // Our own thread is at the other end, and sends nothing else.
    worker.on("message", (message: unknown) => heard(message as Heard));
    worker.on("error", (error: unknown) => {
      cause ??= error instanceof Error ? error : new Error(messageOf(error), { cause: error });
    });
    worker.once("exit", (code) => {
      const why = cause === undefined ? "" : `: ${messageOf(cause)}`;
      gone({ reason: `ended with code ${code}${why}`, cause });
    });
    if (isUnref) worker.unref();
    return {
      post: (message, transfer) => worker.postMessage(message, transfer),
      end: async () => void (await worker.terminate()),
    };
  };
}

function startThread(
  entry: ThreadEntry,
  { name, workerData, transferList = [], heapMiB }: ThreadOptions,
): Worker {
  const prepared = entry instanceof URL ? undefined : entry.take();
  prepared?.begin(workerData, transferList);
  return (
    prepared?.worker ??
    new Worker(entry instanceof URL ? entry : entry.entry, {
      name,
      workerData,
      transferList: [...transferList],
      execArgv: [],
      ...(heapMiB !== undefined && { resourceLimits: heapLimits(heapMiB) }),
    })
  );
}

export type ProcessOptions = {
  /** The niceness of a process that nobody waits for. */
  readonly niceness?: number;
  /**
   * Whether the host may do without it: it gets only the time that no other process wants, where the system allows that (SCHED_IDLE), and is killed before any other
   * where the host has no memory left.
   */
  readonly isExpendable?: boolean;
  readonly env?: Readonly<Record<string, string>>;
};

export type ProcessPeer<Told> = Peer<Told> & {
  /** Undefined: it could not be started. */
  readonly pid: number | undefined;
};

/** A child process of this program, which can be ended where a thread cannot. */
export function processPeer<Told extends object, Heard>(
  entry: URL,
  options: ProcessOptions = {},
): (events: PeerEvents<Heard>) => ProcessPeer<Told> {
  const { niceness, env = {} } = options;
  return ({ heard, gone }) => {
    const child = fork(entry, [], {
      ...shellFor(options),
      env,
      serialization: "advanced", // Bytes travel as bytes.
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    if (niceness !== undefined && child.pid !== undefined) yieldTo(child.pid, niceness);
    const over = new Ending<void>();
    const die = (reason: string): void => {
      if (over.isOver) return;
      over.end();
      child.kill("SIGKILL"); // A process that cannot be reached may run on.
      gone({ reason });
    };
    child.on("message", (message: unknown) => heard(message as Heard));
    child.on("error", (error) => die(`cannot run: ${error.message}`));
    child.once("exit", (code, signal) => die(`ended: ${signal ?? code}`));
    return {
      pid: child.pid,
      post: (message) =>
        void child.send(message, (error) => {
          if (error !== null) die(`cannot be reached: ${error.message}`);
        }),
      end: async () => {
        child.kill("SIGKILL");
      },
    };
  };
}

/** What Node cannot ask of the kernel, a shell does for itself before it becomes the process. What the system forbids is left out. */
const becomeExpendable =
  '{ echo 1000 >/proc/self/oom_score_adj; chrt --idle --pid 0 $$; } >/dev/null 2>&1; exec "$0" "$@"';

function shellFor({ isExpendable = false }: ProcessOptions): {
  readonly execPath?: string;
  readonly execArgv: string[];
} {
  if (!isExpendable) return { execArgv: [] };
  return { execPath: "/bin/sh", execArgv: ["-c", becomeExpendable, process.execPath] };
}

function yieldTo(pid: number, niceness: number): void {
  try {
    setPriority(pid, niceness);
  } catch {
    // The process has ended already; whoever asks it is told.
  }
}

/**
 * `never`: whoever made the client replaces it. `when asked`: the next call starts it. `waitMs`: it starts
 * after that time, which depends on how often it died since it was last well.
 */
export type Restart = "never" | "when asked" | { readonly waitMs: (deaths: number) => number };

export type ThreadClientOptions<Told, Heard> = {
  readonly start: StartPeer<Told, Heard>;
  readonly restart: Restart;
  /**
   * Whether the next thread is asked again what was unanswered when one died. Its calls must be idempotent.
   */
  readonly asksAgain?: boolean;
  readonly onMessage: (message: Heard) => void;
  /** Called when it died, or was ended for a reason of its client's, but not by `close`. */
  readonly onGone?: (death: Death) => void;
  /** Called each time it was started, before waiting calls are asked again. */
  readonly onStart?: () => void;
};

/** The outcome of a call. */
export type CallOutcome<Answer> =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "late" }
  | ({ readonly kind: "gone" } & Death);

type Pending<Told, Answer> = {
  /** The message, kept where it may have to be asked again. */
  readonly message: Told | undefined;
  readonly resolve: (asked: CallOutcome<Answer>) => void;
  readonly reject: (error: unknown) => void;
};

const notStarted: Death = { reason: "is not running" };
const closed: Death = { reason: "was closed" };

export class ThreadClient<Told, Heard, Answer> implements AsyncDisposable {
  readonly #options: ThreadClientOptions<Told, Heard>;
  readonly #pending = new Map<number, Pending<Told, Answer>>();
  readonly #closing = new AbortController();
  #peer: Peer<Told> | undefined;
  #over = new Ending<void>();
  #death = notStarted;
  #restarting = Promise.resolve();
  #deaths = 0;
  #lastNo = 0;

  constructor(options: ThreadClientOptions<Told, Heard>) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#peer !== undefined;
  }

  get isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  /** The number of calls that have not been answered. */
  get waiting(): number {
    return this.#pending.size;
  }

  /** Starts it. Has no effect while it runs, and after `close`. */
  start(): void {
    if (this.#peer !== undefined || this.isClosing) return;
    const over = new Ending<void>();
    const peer = this.#options.start({
      // A peer that was given up may still send something; it answers nobody.
      heard: (message) => void (this.#peer === peer && this.#options.onMessage(message)),
      gone: (death) => {
        over.end();
        this.#lose(peer, death);
      },
    });
    this.#peer = peer;
    this.#over = over;
    this.#options.onStart?.();
    for (const [no, { message }] of this.#pending)
      if (message !== undefined) this.#post(no, message, []);
  }

  /** Sends a message; it is dropped if the peer does not run. */
  tell(message: Told, transfer: readonly Transferable[] = []): void {
    this.#peer?.post(message, transfer);
  }

  /**
   * Asks. `message` gets the number that `answer` and `fail` are to be called with. The message is posted
   * before this returns.
   */
  ask(
    message: (no: number) => Told,
    { deadlineMs, transfer = [] }: { deadlineMs?: number; transfer?: readonly Transferable[] } = {},
  ): Promise<CallOutcome<Answer>> {
    if (this.#options.restart === "when asked") this.start();
    if (this.#peer === undefined && (this.isClosing || this.#options.asksAgain !== true))
      return Promise.resolve({ kind: "gone", ...this.#death });
    const no = ++this.#lastNo;
    const { promise, resolve, reject } = Promise.withResolvers<CallOutcome<Answer>>();
    const told = message(no);
    const late =
      deadlineMs === undefined
        ? undefined
        : setTimeout(() => this.#settle(no)?.resolve({ kind: "late" }), deadlineMs);
    const clear = (): void => clearTimeout(late);
    this.#pending.set(no, {
      message: this.#options.asksAgain === true ? told : undefined,
      resolve: (asked) => (clear(), resolve(asked)),
      reject: (error) => (clear(), reject(error)),
    });
    this.#post(no, told, transfer);
    return promise;
  }

  /** Answers a call. It has no effect on a call that nobody waits for any more. */
  answer(no: number, answer: Answer): void {
    this.#settle(no)?.resolve({ kind: "answered", answer });
  }

  /** Answers the only call of a far end that takes one at a time, and so sends no numbers. */
  answerOnly(answer: Answer): void {
    const [no] = this.#pending.keys();
    if (no !== undefined) this.answer(no, answer);
  }

  fail(no: number, error: unknown): void {
    this.#settle(no)?.reject(error);
  }

  /** Notes that it does its work: the next death counts as the first again. */
  isWell(): void {
    this.#deaths = 0;
  }

  /**
   * Gives it up at once, for this reason; the restart rule holds. Resolves when it no longer runs, which a
   * native call may delay.
   */
  async end(reason: string): Promise<void> {
    const peer = this.#peer;
    if (peer === undefined) return;
    this.#lose(peer, { reason });
    await peer.end();
  }

  /**
   * Never starts it again and reports no death. It can still be asked, for a last call before `close`; its
   * death answers that one as well.
   */
  retire(): void {
    this.#closing.abort();
  }

  /** Ends it for good. After `last` it has `waitMs` to end by itself. */
  async close(last?: Told, waitMs = 0): Promise<void> {
    this.retire();
    await this.#restarting;
    const peer = this.#peer;
    if (peer === undefined) {
      this.#forget(closed);
      return;
    }
    if (last !== undefined) {
      peer.post(last, []);
      const enough = new AbortController();
      await this.#over.or(sleep(waitMs, enough.signal));
      enough.abort();
    }
    // Its death answers the calls that are still open.
    await peer.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Sends a message; what it cannot carry is reported to the caller. */
  #post(no: number, message: Told, transfer: readonly Transferable[]): void {
    try {
      this.#peer?.post(message, transfer);
    } catch (error) {
      this.fail(no, error);
    }
  }

  #settle(no: number): Pending<Told, Answer> | undefined {
    const pending = this.#pending.get(no);
    this.#pending.delete(no);
    return pending;
  }

  #lose(peer: Peer<Told>, death: Death): void {
    if (this.#peer !== peer) return;
    this.#peer = undefined;
    this.#death = death;
    const { asksAgain = false, restart, onGone } = this.#options;
    if (!asksAgain || this.isClosing) this.#forget(death);
    if (this.isClosing) return;
    onGone?.(death);
    if (typeof restart === "object")
      this.#restarting = this.#startAfter(restart.waitMs(this.#deaths++));
  }

  #forget(death: Death): void {
    const unanswered = [...this.#pending.keys()];
    for (const no of unanswered) this.#settle(no)?.resolve({ kind: "gone", ...death });
  }

  async #startAfter(waitMs: number): Promise<void> {
    if (await sleep(waitMs, this.#closing.signal)) this.start();
  }
}
