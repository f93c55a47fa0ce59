// Questions to the agents of a deployment over their channels: numbered, bounded in count and time. Nothing
// of them is kept afterwards.

import { randomBytes } from "node:crypto";
import type { AnswerMessage, DryRunQuestion } from "../../wire/ask.ts";
import { askDeadlineMsMax, failedDryRun } from "../../wire/ask.ts";
import type { Channel } from "./channel.ts";

/** The most questions that wait; each waits in memory for its answer or its deadline. */
const waitingMax = 1_000;
const waitingOfChannelMax = 8;
const olderAgent =
  "an agent of an older release: the clear would be widened there, and what it matches cannot be counted";

export type InstanceAnswer = {
  readonly instanceId: string;
  /** Undefined if none came in time. */
  readonly answer: AnswerMessage | undefined;
};

type Waiting = {
  readonly channel: Channel;
  readonly resolve: (answer: AnswerMessage | undefined) => void;
};

export class Asks {
  readonly #waiting = new Map<string, Waiting>();

  /**
   * Returns one answer for each channel. Resolves by the deadline, or when the signal aborts. Never rejects.
   */
  async ask(
    channels: readonly Channel[],
    question: DryRunQuestion,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<readonly InstanceAnswer[]> {
    const ms = Math.min(deadlineMs, askDeadlineMsMax);
    if (ms < 1) return channels.map((channel) => answered(channel, undefined));
    const over = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
    return Promise.all(channels.map(async (channel) => this.#ask(channel, question, ms, over)));
  }

  /** Takes an answer. One that was not asked for, came over another channel or came too late is left out. */
  received(channel: Channel, answer: AnswerMessage): void {
    const waiting = this.#waiting.get(answer.id);
    if (waiting?.channel === channel) waiting.resolve(answer);
  }

  /** Ends the questions to a channel that can no longer answer. */
  closed(channel: Channel): void {
    for (const waiting of this.#waiting.values())
      if (waiting.channel === channel) waiting.resolve(undefined);
  }

  async #ask(
    channel: Channel,
    question: DryRunQuestion,
    deadlineMs: number,
    over: AbortSignal,
  ): Promise<InstanceAnswer> {
    const ofChannel = [...this.#waiting.values()].filter((other) => other.channel === channel);
    if (this.#waiting.size >= waitingMax || ofChannel.length >= waitingOfChannelMax)
      return answered(channel, undefined);
    // A closed schema would have the agent end the channel.
    if (question.items !== undefined && !channel.takesExtensions)
      return answered(channel, { type: "answer", id: "", ...failedDryRun(olderAgent) });
    const id = randomBytes(8).toString("hex");
    const { promise, resolve } = Promise.withResolvers<AnswerMessage | undefined>();
    const end = (): void => resolve(undefined);
    this.#waiting.set(id, { channel, resolve });
    over.addEventListener("abort", end, { once: true });
    if (over.aborted) end();
    const ask = { type: "ask", id, deadline_ms: Math.max(1, Math.floor(deadlineMs)) } as const;
    const sent = await channel.socket.send({ ...ask, dry_run: question });
    if (!sent) end();
    const answer = await promise;
    over.removeEventListener("abort", end);
    this.#waiting.delete(id);
    return answered(channel, answer);
  }
}

function answered({ instanceId }: Channel, answer: AnswerMessage | undefined): InstanceAnswer {
  return { instanceId: instanceId ?? "", answer };
}
