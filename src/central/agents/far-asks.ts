// Questions to agents whose channels other centrals hold: put through the bus, and answered by it.

import { randomBytes } from "node:crypto";
import type { DryRunQuestion } from "../../wire/ask.ts";
import { askDeadlineMsMax } from "../../wire/ask.ts";
import type { BusMessage } from "../../wire/bus-message.ts";
import type { CentralBus } from "../cluster/bus.ts";
import type { Presence } from "../cluster/presence.ts";
import type { InstanceAnswer } from "./asks.ts";

/** The most questions that wait. */
const waitingMax = 1_000;
/** The way of question and answer: who holds the channels tells by then what it has. */
const wayMs = 150;

type Answers = readonly InstanceAnswer[];
export type AskHere = (
  siteId: number,
  question: DryRunQuestion,
  deadlineMs: number,
  signal: AbortSignal,
) => Promise<Answers>;

export class FarAsks implements Disposable {
  readonly #bus: Pick<CentralBus, "tellOne">;
  readonly #presence: Pick<Presence, "elsewhere">;
  readonly #askHere: AskHere;
  readonly #waiting = new Map<
    string,
    { readonly central: string; readonly resolve: (answers: Answers) => void }
  >();
  readonly #ending = new AbortController();
  readonly #hearing: Disposable;

  /** `askHere` answers the questions of the others. */
  constructor(
    others: {
      readonly bus: Pick<CentralBus, "tellOne" | "hear">;
      readonly presence: Pick<Presence, "elsewhere">;
    },
    askHere: AskHere,
  ) {
    this.#bus = others.bus;
    this.#presence = others.presence;
    this.#askHere = askHere;
    this.#hearing = others.bus.hear((message, from) => this.#heard(message, from));
  }

  /** Returns an answer for each instance of the site's agents with a channel elsewhere. Resolves by the deadline, or when the signal aborts. Never rejects. */
  async ask(
    siteId: number,
    question: DryRunQuestion,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<Answers> {
    const byCentral = Map.groupBy(this.#presence.elsewhere(siteId), ({ central }) => central);
    const ms = Math.floor(Math.min(deadlineMs, askDeadlineMsMax));
    const all = await Promise.all(
      [...byCentral].map(async ([central, channels]) => {
        const given =
          ms < 1 || this.#waiting.size >= waitingMax
            ? []
            : await this.#askCentral(central, { siteId, question, ms }, signal);
        // Who is connected there and was not asked, or whose central died, has not answered.
        const told = new Set(given.map(({ instanceId }) => instanceId));
        const silent = new Set(channels.map(({ instanceId }) => instanceId)).difference(told);
        return [...given, ...[...silent].map((instanceId) => ({ instanceId, answer: undefined }))];
      }),
    );
    return all.flat();
  }

  [Symbol.dispose](): void {
    this.#hearing[Symbol.dispose]();
    this.#ending.abort();
  }

  async #askCentral(
    central: string,
    asked: { readonly siteId: number; readonly question: DryRunQuestion; readonly ms: number },
    signal: AbortSignal,
  ): Promise<Answers> {
    const { siteId, question, ms } = asked;
    const over = AbortSignal.any([signal, this.#ending.signal, AbortSignal.timeout(ms)]);
    const id = randomBytes(8).toString("hex");
    const { promise, resolve } = Promise.withResolvers<Answers>();
    const end = (): void => resolve([]);
    this.#waiting.set(id, { central, resolve });
    over.addEventListener("abort", end, { once: true });
    if (over.aborted) end();
    this.#bus.tellOne(central, {
      kind: "ask",
      id,
      site_id: siteId,
      deadline_ms: Math.max(1, ms - wayMs),
      dry_run: question,
    });
    const answers = await promise;
    over.removeEventListener("abort", end);
    this.#waiting.delete(id);
    return answers;
  }

  #heard(message: BusMessage, from: string): void {
    if (message.kind === "ask") void this.#answer(message, from);
    if (message.kind !== "answer") return;
    const waiting = this.#waiting.get(message.id);
    if (waiting?.central !== from) return;
    waiting.resolve(
      message.answers.map(({ instance_id: instanceId, answer }) => {
        return { instanceId, answer: answer ?? undefined };
      }),
    );
  }

  /** Never rejects, as `askHere` does not. */
  async #answer(message: Extract<BusMessage, { kind: "ask" }>, from: string): Promise<void> {
    const { id, site_id: siteId, dry_run: question, deadline_ms: ms } = message;
    const answers = await this.#askHere(siteId, question, ms, this.#ending.signal);
    this.#bus.tellOne(from, {
      kind: "answer",
      id,
      answers: answers.map(({ instanceId, answer }) => {
        return { instance_id: instanceId, answer: answer ?? null };
      }),
    });
  }
}
