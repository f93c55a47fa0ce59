// What an agent that hands over and its successor say to each other (decision 0114), over the IPC channel of the process that the first one starts. The two may be of
// different releases, so messages are only ever added to.
//
//   predecessor                                   successor
//                                                 ready: settings read, nothing taken
//   take: the state directory is yours       →
//                                            ←    serving: visitors are accepted
//   main: systemd hears you from now on      →
//   record, for each that is answered late   →
//   counts, of unreviewed bots among these   →
//   invalidate, what these have changed      →
//                                            ←    invalidated: it is durable in the index, or why it is not
//   quiet: no request begins here any more   →
//   last: nothing is started behind the stop →
//   (ends)                                        takes orders of central and of operators

import { once } from "./wait.ts";
import { AccelError } from "../core/faults.ts";

/** How a process knows that it is a successor. */
const variable = "ACCEL_SUCCEEDS";

export const isSuccessor = (env: NodeJS.ProcessEnv): boolean => env[variable] === "1";

/** The environment of a successor, from that of the process before. Its sockets have the numbers from 3 on. */
export function successorEnv(
  env: NodeJS.ProcessEnv,
  socketNames: readonly string[],
): NodeJS.ProcessEnv {
  const { LISTEN_PID: _, LISTEN_PIDFDID: __, ...rest } = env;
  return {
    ...rest,
    [variable]: "1",
    LISTEN_FDS: `${socketNames.length}`,
    LISTEN_FDNAMES: socketNames.join(":"),
  };
}

/** Requests of one unreviewed bot. */
export type LateCount = {
  readonly domain: string;
  readonly name: string;
  readonly description: string | null;
  readonly isFake: boolean;
  readonly requests: number;
};

/** What a request has changed, by the key of the cache. */
export type LateChange = { readonly no: number; readonly key: unknown };

export type ToSuccessor =
  /** `because`: why the release that was to take over does not, where the one before returns. */
  | { readonly kind: "take"; readonly because?: string }
  | { readonly kind: "main" }
  | { readonly kind: "record"; readonly line: string }
  | { readonly kind: "counts"; readonly counts: readonly LateCount[] }
  /** Answered by `invalidated` with the same number; `key` is one of the cache. */
  | { readonly kind: "invalidate"; readonly no: number; readonly key: unknown }
  | { readonly kind: "quiet" }
  /** The unit is stopped, and not started again. */
  | { readonly kind: "last" };

export type FromSuccessor =
  | { readonly kind: "ready" }
  | { readonly kind: "serving" }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "invalidated"; readonly no: number; readonly fault?: string | undefined };

/** What `process` has of the channel. */
export type SuccessorChannel = {
  /** Without `done`, an error would end the program. */
  readonly send?: ((message: FromSuccessor, done: () => void) => unknown) | undefined;
  readonly disconnect?: (() => void) | undefined;
  readonly connected: boolean;
  on(event: "message", hear: (message: unknown) => void): unknown;
  once(event: "disconnect", ended: () => void): unknown;
};

/** What comes before somebody takes it waits for him. */
class Arrivals<T> {
  #waiting: T[] = [];
  #take: ((one: T) => void) | undefined;

  follow(take: (one: T) => void): void {
    this.#take = take;
    for (const one of this.#waiting.splice(0)) take(one);
  }

  hear(one: T): void {
    if (this.#take === undefined) this.#waiting.push(one);
    else this.#take(one);
  }
}

/** A successor's end of the channel. */
export class Succession implements Disposable {
  readonly #channel: SuccessorChannel;
  readonly #taken = Promise.withResolvers<string | undefined>();
  readonly #main = Promise.withResolvers<void>();
  readonly #quiet = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();
  readonly #records = new Arrivals<string>();
  readonly #counts = new Arrivals<readonly LateCount[]>();
  readonly #invalidations = new Arrivals<LateChange>();
  #isMain = false;
  #isLast = false;

  /** `onOrphaned`: the process before ended without having given up its place. */
  constructor(channel: SuccessorChannel, onOrphaned: () => void) {
    this.#channel = channel;
    this.#taken.promise.catch(() => {}); // Nobody may wait for it when the process before ends.
    channel.on("message", (message) => this.#hear(message));
    channel.once("disconnect", () => {
      if (!this.#isMain) onOrphaned();
      this.#taken.reject(new AccelError("STOPPING", "the agent before has ended"));
      this.#quiet.resolve();
      this.#ended.resolve();
    });
  }

  /** Says that everything is prepared. Resolves when the state directory is this process's, with why a newer release did not take it. Throws STOPPING, at a stop too. */
  async ready(stop: AbortSignal): Promise<string | undefined> {
    this.#send({ kind: "ready" });
    void once(stop).then(() => this.#taken.reject(new AccelError("STOPPING", "the agent stops")));
    return this.#taken.promise;
  }

  serving(): void {
    this.#send({ kind: "serving" });
  }

  /** Says why this process will not serve. */
  failed(reason: string): void {
    if (!this.#isMain) this.#send({ kind: "failed", reason });
  }

  /** Nobody hears it any more where the process before has ended. */
  #send(message: FromSuccessor): void {
    if (this.#channel.connected) this.#channel.send?.(message, () => {});
  }

  /** Leaves the process before to itself: this one ends. */
  [Symbol.dispose](): void {
    if (this.#channel.connected) this.#channel.disconnect?.();
  }

  /** Resolves when systemd hears this process. */
  get main(): Promise<void> {
    return this.#main.promise;
  }

  get quiet(): Promise<void> {
    return this.#quiet.promise;
  }

  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Whether the process before was told that nothing is started behind the stop of the unit. */
  get isLast(): boolean {
    return this.#isLast;
  }

  followRecords(take: (line: string) => void): void {
    this.#records.follow(take);
  }

  followCounts(take: (counts: readonly LateCount[]) => void): void {
    this.#counts.follow(take);
  }

  followInvalidations(take: (change: LateChange) => void): void {
    this.#invalidations.follow(take);
  }

  /** `fault` undefined: it is durable. */
  invalidated(no: number, fault?: string): void {
    this.#send({ kind: "invalidated", no, fault });
  }

  #hear(raw: unknown): void {
    // The process before says nothing else, or something of a later release.
    const message = raw as ToSuccessor;
    if (message.kind === "take") this.#taken.resolve(message.because);
    else if (message.kind === "main") {
      this.#isMain = true;
      this.#main.resolve();
    } else if (message.kind === "quiet") this.#quiet.resolve();
    else if (message.kind === "last") this.#isLast = true;
    else if (message.kind === "record") this.#records.hear(message.line);
    else if (message.kind === "counts") this.#counts.hear(message.counts);
    else if (message.kind === "invalidate") this.#invalidations.hear(message);
  }
}
