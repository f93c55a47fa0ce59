// The two ways of being in touch with central: over a channel, or by long polls where something on the way
// refuses channels. Both bring entries to the follower and carry receipts and reports to central.

import { AccelError } from "../../core/faults.ts";
import { every, sleep, orStopped } from "../../base/wait.ts";
import type { AgentMessage, CountedBatch, Hello, Report } from "../../wire/channel.ts";
import type { Position } from "../../wire/position.ts";
import type { Receipt } from "../../wire/receipt.ts";
import { messageAsTaken } from "./as-taken.ts";
import { Questions, type AnswerDryRun } from "./asked.ts";
import type { CentralClient } from "./central-client.ts";
import { runChannel, type ChannelEnd } from "./channel.ts";
import type { Follower } from "./follower.ts";
import type { LinkTelemetry } from "./link-telemetry.ts";
import type { LinkTimings } from "./link-timings.ts";
import type { ReceiptOutbox } from "./outbox.ts";

export type ContactParts = {
  readonly client: CentralClient;
  readonly instanceId: string;
  readonly follower: Follower;
  readonly outbox: ReceiptOutbox;
  readonly telemetry: LinkTelemetry;
  readonly timings: LinkTimings;
  /** The facts of this agent that hello tells; over plain requests reports tell them. */
  readonly self: Pick<Hello, "agent_version" | "edge">;
  readonly report: () => Promise<Omit<Report, "instance_id" | "position">>;
  readonly counted: (batch: CountedBatch) => void;
  readonly answerDryRun: AnswerDryRun;
  /** Called when central answered as it should. */
  readonly reached: () => void;
};

export type Send = (message: AgentMessage) => boolean;

/** Keeps contact as long as a channel lasts. `attach` is called when central has welcomed us. */
export async function runChannelContact(
  parts: ContactParts,
  options: {
    readonly token: string;
    readonly hello: Omit<Hello, "epoch" | "applied_seq" | "chain" | "type">;
    readonly attach: (send: Send) => Disposable;
    readonly stop: AbortSignal;
  },
): Promise<ChannelEnd> {
  const { client, follower, outbox, telemetry, timings, reached } = parts;
  const { epoch, applied_seq, chain } = follower.position();
  const over = new AbortController();
  const stop = AbortSignal.any([options.stop, over.signal]);
  const side: Promise<void>[] = [];
  const asked = new Questions(parts.answerDryRun);
  let reply: Send = () => false;
  let silence: AccelError | undefined;
  using attached = new DisposableStack();
  const end = await runChannel(
    {
      url: client.transport.channelUrl,
      ca: client.transport.ca,
      agent: client.transport.channelAgent,
      token: options.token,
      hello: { type: "hello", ...options.hello, epoch, applied_seq, chain },
      pingIntervalMs: timings.pingIntervalMs,
      welcomeMs: timings.welcomeMs,
      stop,
    },
    {
      heard: () => telemetry.heard(),
      held: () => outbox.held(),
      welcome: (welcome, send, takes) => {
        reached();
        if (welcome.epoch !== epoch) {
          void follower.resync(`central's store is now ${welcome.epoch}`);
          return;
        }
        telemetry.become("connected");
        reply = send;
        const tell: Send = (message) => send(messageAsTaken(message, takes));
        attached.use(
          outbox.attach((receipt) => tell(receiptMessage(receipt, follower.position()))),
        );
        attached.use(options.attach(send));
        const silent = (error: AccelError): void => {
          silence = error;
          over.abort(error);
        };
        side.push(
          runReports(parts, async (report) => void tell({ type: "report", report }), stop),
          watchAcknowledgements(parts, silent, stop),
        );
        follower.confirmAt(welcome.head_seq);
      },
      message: (message) => {
        if (message.type === "entries") follower.offer(message.entries);
        else if (message.type === "receipt_ack") outbox.acknowledged(message);
        else if (message.type === "report_ack") parts.counted(message.counted);
        else if (message.type === "ask") asked.receive(message, (answer) => void reply(answer));
        else void follower.resync(`central asked for it: ${message.reason}`);
      },
    },
  );
  over.abort();
  await Promise.all(side);
  await orStopped(asked.idle(), options.stop);
  return silence === undefined ? end : { kind: "ended", error: silence };
}

function receiptMessage(receipt: Receipt, position: Position): AgentMessage {
  return { type: "receipt", receipt, position };
}

/** Ends a channel on which receipts stay unanswered: it is not what it seems. */
async function watchAcknowledgements(
  { outbox, telemetry, timings }: ContactParts,
  silent: (error: AccelError) => void,
  stop: AbortSignal,
): Promise<void> {
  const look = (): void => {
    if (outbox.oldestWaitMs() >= timings.ackMs)
      silent(new AccelError("CENTRAL_UNREACHABLE", "receipts on the channel are unanswered"));
  };
  await every(timings.ackMs / 4, look, { stop, onError: (error) => telemetry.defect(error) });
}

/** Keeps contact by long polls until stopped. Throws what the first failing request threw. */
export async function runLongPollContact(parts: ContactParts, stopped: AbortSignal): Promise<void> {
  const { client, instanceId, follower, outbox, telemetry, timings, reached } = parts;
  const over = new AbortController();
  const stop = AbortSignal.any([stopped, over.signal]);
  let failure: unknown;
  const guarded = async (loop: () => Promise<void>): Promise<void> => {
    try {
      await loop();
    } catch (error) {
      if (stop.aborted) return;
      failure = error;
      over.abort();
    }
  };
  // Receipts name places in the journal, so they go out only when central has judged that our history is its
  // own.
  const judged = Promise.withResolvers<void>();
  const entries = async (): Promise<void> => {
    const head = await follower.fetchPage(0, stop);
    judged.resolve();
    reached();
    telemetry.become("polling");
    telemetry.heard();
    if (head !== "not-asked") follower.confirmAt(head);
    while (!stop.aborted) {
      const askedMs = performance.now();
      const before = follower.headSeq;
      await follower.fetchPage(timings.longPollMs, stop);
      telemetry.heard();
      const { longPollPauseMs: pauseMs } = timings;
      // Something on the way answers without waiting; do not ask as fast as it answers.
      if (follower.headSeq === before && performance.now() - askedMs < pauseMs)
        await sleep(pauseMs, stop);
    }
  };
  const receipts = async (): Promise<void> => {
    await orStopped(judged.promise, stop);
    while (!stop.aborted) {
      const change = outbox.changed();
      await outbox.flush(async (batch) =>
        client.postReceipts(
          { instance_id: instanceId, receipts: batch, position: follower.position() },
          stop,
        ),
      );
      await orStopped(change, stop);
    }
  };
  const post = async (report: Report): Promise<void> => {
    await client.postReport({ ...report, ...parts.self }, stop);
    if (report.counted !== undefined) parts.counted(report.counted);
  };
  const reports = async (): Promise<void> => runReports(parts, post, stop);
  await Promise.all([guarded(entries), guarded(receipts), guarded(reports)]);
  if (failure !== undefined) throw failure;
}

/**
 * Sends a report at once and then regularly. A report that fails is left out, for the next one tells more.
 */
async function runReports(
  { instanceId, follower, report, telemetry, timings }: ContactParts,
  tell: (report: Report) => Promise<void>,
  stop: AbortSignal,
): Promise<void> {
  const once = async (): Promise<void> => {
    const facts = await orStopped(report(), stop);
    if (facts === undefined || stop.aborted) return;
    await tell({ instance_id: instanceId, ...facts, position: follower.position() });
  };
  const onError = (error: unknown): void => telemetry.reportFailed(error);
  await once().catch((error: unknown) => (stop.aborted ? undefined : onError(error)));
  await every(timings.reportIntervalMs, once, { stop, onError });
}
