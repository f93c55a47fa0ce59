// A worker's side of counting unreviewed bots: counts are gathered for a moment and told to main. If a thread
// is killed without warning, what it counted in its last moment is lost; nothing else is.

import type { MessagePort } from "node:worker_threads";
import { UnreviewedCounts, type CountedBot, type UnreviewedCount } from "./unreviewed-counts.ts";

/** A message from a worker to main. */
export type UnreviewedMessage = readonly UnreviewedCount[];

/** The time for which counts are gathered: ten messages a second, however many bots visit. */
const gatherMs = 100;

export class UnreviewedTeller implements Disposable {
  readonly #port: MessagePort;
  readonly #counts = new UnreviewedCounts();
  #timer: NodeJS.Timeout | undefined;

  constructor(port: MessagePort) {
    this.#port = port;
  }

  count(domain: string, bot: CountedBot): void {
    this.#counts.add(domain, bot);
    this.#timer ??= setTimeout(() => this.#tell(), gatherMs).unref();
  }

  #tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const message: UnreviewedMessage = this.#counts.take();
    if (message.length > 0) this.#port.postMessage(message, []);
  }

  /** Tells the last counts. It may be called while the thread exits. */
  [Symbol.dispose](): void {
    this.#tell();
    this.#port.close();
  }
}
