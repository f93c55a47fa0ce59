// A thread or child process as the one who asks it sees it: numbered calls with deadlines, what its death means for them, and whether it is started again.
//
// Each client names its rule of restart. What is expected to happen to a call (an answer, no answer in time, a thread that is gone) is a value; `ask` rejects only
// with what the far end refused by `fail`, and with what a message cannot carry.

import { fork } from "node:child_process";
import { setPriority } from "node:os";
import { Worker, type Transferable } from "node:worker_threads";
import { messageOf } from "../core/faults.ts";
import { Ending } from "./ending.ts";
import { heapLimits } from "./heap-limits.ts";
import { sleep } from "./wait.ts";

/** Why a thread runs no more, as the end of a sentence ("ended with code 1: out of memory"). `cause`: what it threw. */
export type Death = { readonly reason: string; readonly cause?: Error | undefined };

/** The far end. */
export type Peer<Told> = {
  /** Throws what cannot be cloned. */
  post(message: Told, transfer: readonly Transferable[]): void;
  /** Ends it wherever it is. Resolves when that is done. */
  end(): Promise<void>;
};

export type PeerEvents<Heard> = {
  readonly heard: (message: Heard) => void;
  /** Once: it runs no more. */
  readonly gone: (death: Death) => void;
};

export type StartPeer<Told, Heard> = (events: PeerEvents<Heard>) => Peer<Told>;

export type ThreadOptions = {
  readonly name: string;
  readonly workerData?: unknown;
  readonly transferList?: readonly Transferable[];
  /** The limit of the old part of its heap. */
  readonly heapMiB?: number;
  /** The process may end while it runs. */
  readonly isUnref?: boolean;
};

/** A thread of this program. */
export function threadPeer<Told, Heard>(
  entry: URL,
  { name, workerData, transferList = [], heapMiB, isUnref = false }: ThreadOptions,
): StartPeer<Told, Heard> {
  return ({ heard, gone }) => {
    const worker = new Worker(entry, {
      name,
      workerData,
      transferList: [...transferList],
      execArgv: [],
      ...(heapMiB !== undefined && { resourceLimits: heapLimits(heapMiB) }),
    });
    let cause: Error | undefined;
    // Our own thread is at the other end, and says nothing else.
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

/** A child process of this program, which can be ended where a thread cannot. `niceness`: of one that nobody waits for. */
export function processPeer<Told extends object, Heard>(
  entry: URL,
  niceness?: number,
): StartPeer<Told, Heard> {
  return ({ heard, gone }) => {
    const child = fork(entry, [], {
      execArgv: [],
      env: {},
      serialization: "advanced", // Bytes travel as bytes.
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    if (niceness !== undefined && child.pid !== undefined) yieldTo(child.pid, niceness);
    const over = new Ending<void>();
    const die = (reason: string): void => {
      if (over.isOver) return;
      over.end();
      child.kill("SIGKILL"); // One that cannot be reached may run on.
      gone({ reason });
    };
    child.on("message", (message: unknown) => heard(message as Heard));
    child.on("error", (error) => die(`cannot run: ${error.message}`));
    child.once("exit", (code, signal) => die(`ended: ${signal ?? code}`));
    return {
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

function yieldTo(pid: number, niceness: number): void {
  try {
    setPriority(pid, niceness);
  } catch {
    // It has ended already, which whoever asks is told.
  }
}

/**
 * `never`: whoever made the client replaces it. `when asked`: by the next call. `waitMs`: after that long, by how often it died since it was last well.
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
  /** It died, or was ended for a reason of its client's; not by `close`. */
  readonly onGone?: (death: Death) => void;
  /** Each time it was started, before what waits is asked again. */
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

  /** Calls that have not been answered. */
  get waiting(): number {
    return this.#pending.size;
  }

  /** No effect where it runs, and after `close`. */
  start(): void {
    if (this.#peer !== undefined || this.isClosing) return;
    const over = new Ending<void>();
    const peer = this.#options.start({
      // What one that was given up still says is nobody's answer.
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

  /** Dropped where it does not run. */
  tell(message: Told, transfer: readonly Transferable[] = []): void {
    this.#peer?.post(message, transfer);
  }

  /** `message` is given the number that `answer` and `fail` are to be called with. Posted before this returns. */
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

  /** It does its work: the next death is the first again. */
  isWell(): void {
    this.#deaths = 0;
  }

  /** Gives it up at once, for this reason; the rule of restart holds. Resolves when it runs no line more, which a native call may hold up. */
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
    // What it was asked is answered by its death.
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
