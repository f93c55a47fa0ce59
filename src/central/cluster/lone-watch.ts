// Whether this central alone has no way to the store. The others have taken it for gone then, and their customers wait for its agents in vain.
//
//   works ── no beat for 20 s, and another central says that it works ──▶ lone ── a beat, or nobody says so any more ──▶ works
//
// The bus goes through the store. So the others are asked by HTTP: at their own addresses, and at the one of all. While the store is away for all of them nobody says that he
// works, and nothing changes: agents would come back to nothing better.
//
// A lone central is not ready, so that a balancer gives it nobody new. It sends its agents off once the address of all leads to others: before, and where nothing asks whether it
// is ready, they would come back to it, for it has the fewest.

import type { Log } from "../../base/log.ts";
import { repeating } from "../../base/wait.ts";
import { messageOf } from "../../core/faults.ts";
import type { AskCentral } from "./ask-central.ts";
import type { Membership } from "./membership.ts";

/** The others take it for gone after 10 s, and a failover takes central as long. */
const aloneAfterMs = 20_000;
/** What another one said holds for so long. */
const saidMs = 6_000;
/** So many answers in a row of others, at the address of all, say that it leads to them. */
const leadsMin = 5;

export type LoneWatchOptions = {
  /** Of this central, on the bus. */
  readonly id: string;
  readonly membership: Pick<Membership, "sinceBeatMs">;
  /** Where each of the others may be asked. */
  readonly others: () => readonly string[];
  /** The address of all. */
  readonly baseUrl: string;
  readonly ask: AskCentral;
  readonly monotonicMs: () => number;
  readonly log: Log;
  /** Called when it begins and when it is over; must not throw. */
  readonly onLone: (isLone: boolean) => void;
  /** Between two looks. */
  readonly lookMs?: number;
};

export class LoneWatch implements AsyncDisposable {
  readonly #options: LoneWatchOptions;
  readonly #senders = new Set<(stop: AbortSignal) => void>();
  readonly #looking: AsyncDisposable;
  #saidAtMs = -Infinity;
  #leads = 0;
  #sending: AbortController | undefined;
  #isTold = false;

  constructor(options: LoneWatchOptions) {
    this.#options = options;
    this.#looking = repeating(options.lookMs ?? 1_000, async (stop) => this.look(stop), {
      onError: (error) =>
        options.log.debug({ reason: messageOf(error) }, "the other centrals could not be asked"),
    });
  }

  get isLone(): boolean {
    const { membership, monotonicMs } = this.#options;
    return membership.sinceBeatMs >= aloneAfterMs && monotonicMs() - this.#saidAtMs < saidMs;
  }

  /** Calls the sender when agents are to be sent off; they are not any more when its signal aborts. Must not throw. */
  onSendOff(sender: (stop: AbortSignal) => void): void {
    this.#senders.add(sender);
  }

  async look(stop: AbortSignal): Promise<void> {
    const { id, membership, baseUrl, ask, monotonicMs, others } = this.#options;
    if (membership.sinceBeatMs < aloneAfterMs) return this.#tell();
    const atAll = await ask(baseUrl, stop);
    const isOthers = atAll !== undefined && atAll.central !== id && atAll.works;
    const answers = isOthers
      ? [atAll]
      : await Promise.all(others().map(async (origin) => ask(origin, stop)));
    if (answers.some((told) => told !== undefined && told.central !== id && told.works))
      this.#saidAtMs = monotonicMs();
    this.#tell();
    if (!this.isLone || stop.aborted) return;
    this.#leads = isOthers ? this.#leads + 1 : 0;
    if (!isOthers) this.#endSending();
    else if (this.#leads >= leadsMin) this.#send();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#looking[Symbol.asyncDispose]();
    this.#endSending();
  }

  #tell(): void {
    const { log, onLone } = this.#options;
    const { isLone } = this;
    if (!isLone) {
      this.#leads = 0;
      this.#endSending();
    }
    if (isLone === this.#isTold) return;
    this.#isTold = isLone;
    onLone(isLone);
    if (isLone)
      log.error(
        "this central alone has no way to the store: another one works, and this one is not ready",
      );
    else log.info("this central is one of those again that have the store, or none has it");
  }

  #send(): void {
    if (this.#sending !== undefined) return;
    this.#sending = new AbortController();
    for (const sender of this.#senders) sender(this.#sending.signal);
  }

  #endSending(): void {
    this.#sending?.abort();
    this.#sending = undefined;
  }
}
