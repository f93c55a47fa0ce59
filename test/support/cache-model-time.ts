// Time and messages of the model check, in the hands of its scheduler: timers of the process that run when they are told to, and ports whose
// messages lie in an inbox until they are delivered. So every order is one that the seed chose.

import type { MessagePort } from "node:worker_threads";

type Listener = (message: unknown) => void;
type Item = { readonly kind: "message"; readonly message: unknown } | { readonly kind: "close" };

/** As much of a MessagePort as the cache uses. Nothing is copied: what is sent is not changed afterwards. */
export class FakePort {
  #peer: FakePort | undefined;
  readonly #onMessage: Listener[] = [];
  readonly #onClose: (() => void)[] = [];
  inbox: Item[] = [];
  #isClosed = false;

  static pair(): [FakePort, FakePort] {
    const [one, other] = [new FakePort(), new FakePort()];
    one.#peer = other;
    other.#peer = one;
    return [one, other];
  }

  /** For the code under test, which takes it for a real one. */
  get port(): MessagePort {
    // It calls nothing but what is here.
    return this as unknown as MessagePort;
  }

  on(event: string, listener: Listener): this {
    if (event === "message") this.#onMessage.push(listener);
    else this.#onClose.push(() => listener(undefined));
    return this;
  }

  once(event: string, listener: Listener): this {
    return this.on(event, listener);
  }

  postMessage(message: unknown): void {
    if (!this.#isClosed) this.#peer?.inbox.push({ kind: "message", message });
  }

  /** What was sent before arrives before the other side learns of the end. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.inbox = [];
    this.#peer?.inbox.push({ kind: "close" });
  }

  unref(): void {
    // The scheduler keeps itself alive.
  }

  deliver(): unknown {
    const item = this.inbox.shift();
    if (item === undefined || this.#isClosed) return undefined;
    if (item.kind === "close") {
      this.close();
      for (const listener of this.#onClose) listener();
      return undefined;
    }
    for (const listener of this.#onMessage) listener(item.message);
    return item.message;
  }
}

const real = { setImmediate, clearImmediate, setTimeout, clearTimeout, setInterval, clearInterval };
type Task = { readonly run: () => void; unref: () => Task };

/** All microtasks that were due have run when it resolves. */
export function settled(): Promise<void> {
  return new Promise((resolve) => real.setImmediate(resolve));
}

/** Real waiting for the disk, which no seed orders: the scheduler does nothing meanwhile. */
export async function reached(what: string, is: () => boolean): Promise<void> {
  for (let turns = 0; !is(); turns++) {
    if (turns > 1_000_000) throw new Error(`never: ${what}`);
    await settled();
  }
}

export class VirtualTimers implements Disposable {
  #immediates = new Set<Task>();
  #timeouts = new Set<Task>();

  /** Until disposed, timers of this process are these. */
  constructor() {
    const add = (tasks: () => Set<Task>, run: () => void): Task => {
      const task: Task = { run, unref: () => task };
      tasks().add(task);
      return task;
    };
    const drop = (task: unknown): void => {
      // Whatever it is, it is removed only if it is one of ours.
      this.#immediates.delete(task as Task);
      this.#timeouts.delete(task as Task);
    };
    Object.assign(globalThis, {
      setImmediate: (run: () => void) => add(() => this.#immediates, run),
      setTimeout: (run: () => void) => add(() => this.#timeouts, run),
      setInterval: (run: () => void) => add(() => new Set(), run),
      clearImmediate: drop,
      clearTimeout: drop,
      clearInterval: drop,
    });
  }

  get immediates(): number {
    return this.#immediates.size;
  }

  /** The oldest turn of the loop that somebody asked for. */
  turn(): void {
    const [task] = this.#immediates;
    if (task === undefined) return;
    this.#immediates.delete(task);
    task.run();
  }

  /** Every deadline passes. */
  pass(): void {
    const due = [...this.#timeouts];
    this.#timeouts.clear();
    for (const { run } of due) run();
  }

  /** The process has ended. */
  forget(): void {
    this.#immediates.clear();
    this.#timeouts.clear();
  }

  [Symbol.dispose](): void {
    Object.assign(globalThis, real);
  }
}
