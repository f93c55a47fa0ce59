// The channel: JSON text messages over a WebSocket, `GET /agent-api/v1/channel`. A side that does not
// understand a message refuses it by closing with 1008 and the reason.

import { Type, type Static } from "typebox";
import { AnswerMessage, AskMessage } from "./ask.ts";
import { closed, decoder } from "./validate.ts";
import { Count, Day, Epoch, HostText, InstanceId, Seq, Sha256Text, Timestamp } from "./parts.ts";
import { JournalItem } from "./journal.ts";
import { Position } from "./position.ts";
import { Receipt, ReceiptPhase } from "./receipt.ts";

export const pingIntervalMs = 15_000;
/** A peer that was not heard for longer has missed a ping and 5 s for its way: nobody calls it connected any more. */
export const heardWithinMs = 20_000;
/** The misses after which the channel is dead, whatever TCP says. */
export const pingMissesMax = 2;
export const messageBytesMax = 8 * 2 ** 20; // 500 entries of up to 16 KiB.

/** The agent's settings `edge:`; absent members were never said. */
export const EdgeFacts = closed({
  server_name: Type.String(),
  edge_ip_address: Type.String(),
  at_directory: Type.String(),
  datacenter_place: Type.String(),
  country_code: Type.String(),
  datacenter_provider_company: Type.String(),
  /** `host:port` under which Prometheus reaches the agent; null if it is not to be scraped. */
  metrics_advertise: Type.Union([Type.String(), Type.Null()]),
});
export type EdgeFacts = Static<typeof EdgeFacts>;

/** A health warning, the same on every surface. */
export const Warning = closed({
  code: Type.String(),
  severity: Type.Union([Type.Literal("info"), Type.Literal("warning"), Type.Literal("error")]),
  text: Type.String(),
  since: Type.String(),
  hint: Type.String(),
});
export type Warning = Static<typeof Warning>;
export const decodeWarnings = decoder(Type.Array(Warning));

/**
 * The requests of a domain's visitors since the agent's start: all of them, those answered from the cache or
 * a file, those blocked, and the bytes sent.
 */
export const Traffic = closed({ requests: Count, hits: Count, blocked: Count, bytes: Count });
export type Traffic = Static<typeof Traffic>;

/**
 * The variants of images since the agent's start; `blocked` counts those held back because the day's number was used
 * up.
 */
export const Variants = closed({
  made: Count,
  blocked: Count,
  /**
   * When the agent began to count, and how many of them fell on the UTC day that its clock shows. Absent from a report
   * to a central that does not take it (`position.ts`).
   */
  today: Type.Optional(closed({ since: Timestamp, day: Day, made: Count, blocked: Count })),
});
export type Variants = Static<typeof Variants>;

/** The most certificates of a report; those that end soonest come first. */
export const reportCertificatesMax = 100;

/**
 * The counts of a report that central adds up, once however often the report arrives. `seq` counts up from 1
 * within a start of the agent.
 */
export const CountedBatch = closed({
  boot_id: Type.String({ minLength: 1, maxLength: 64 }),
  seq: Seq,
});
export type CountedBatch = Static<typeof CountedBatch>;

export const Report = closed({
  instance_id: InstanceId,
  /** The version that hello tells, for an agent without a channel. If absent, what was told before stays. */
  agent_version: Type.Optional(Type.String()),
  edge: Type.Optional(Type.Union([EdgeFacts, Type.Null()])),
  /** What the host calls itself (gethostname(2)); absent from a report to a central that does not take it (`position.ts`). */
  host_name: Type.Optional(Type.String({ minLength: 1, maxLength: 253 })),
  /** Absent from an agent of the previous release, and from a report to a central of the previous release. */
  position: Type.Optional(Position),
  /**
   * The batch that `unreviewed_bots` count, since the batch before. It is sent again until acknowledged, and
   * absent if there is nothing to add.
   */
  counted: Type.Optional(CountedBatch),
  /** Sums over all lanes since the agent's state began: accepted = delivered + spooled + in_memory + dropped. */
  spool: closed({
    accepted: Count,
    delivered: Count,
    spooled: Count,
    in_memory: Count,
    dropped: Count,
  }),
  domains: Type.Array(
    closed({
      domain: HostText,
      backend: closed({
        requests: Count,
        errors: Count,
        latency_buckets: Type.Record(Type.String(), Count),
        reachable: Type.Boolean(),
        /**
         * The state of the active checks (`backend.health`): "down" if all origins are checked and fail, "up"
         * if one is good, absent if none is checked or no check has said so yet.
         */
        checks: Type.Optional(Type.Union([Type.Literal("up"), Type.Literal("down")])),
      }),
      unreviewed_bots: Type.Array(
        closed({
          name: Type.String({ minLength: 1, maxLength: 255 }),
          description: Type.Union([Type.String({ maxLength: 1_024 }), Type.Null()]),
          requests: Count,
        }),
      ),
      /** Absent if not counted. */
      traffic: Type.Optional(Traffic),
      /** Absent if no variants of images are counted here. */
      variants: Type.Optional(Variants),
    }),
  ),
  /** The certificates in force on this host that expire soon, or have expired; absent if not told. */
  certificates: Type.Optional(
    Type.Array(
      closed({ names: Type.Array(Type.String({ maxLength: 253 })), not_after: Type.String() }),
      { maxItems: reportCertificatesMax },
    ),
  ),
  warnings: Type.Array(Warning),
});
export type Report = Static<typeof Report>;
export const decodeReport = decoder(Report);
export const reportIntervalMs = 30_000;

export const Hello = closed({
  type: Type.Literal("hello"),
  agent_version: Type.String(),
  instance_id: InstanceId,
  /** Random per start of the agent. */
  boot_id: Type.String(),
  /** Null if this agent has no state of any store yet. */
  epoch: Type.Union([Epoch, Type.Null()]),
  applied_seq: Seq,
  chain: Sha256Text,
  edge: Type.Union([EdgeFacts, Type.Null()]),
});
export type Hello = Static<typeof Hello>;

/** The progress of a running import. It is best effort; the receipt tells the end. */
export const ImportProgressMessage = closed({
  type: Type.Literal("progress"),
  import_id: Type.String(),
  phase: Type.Union([Type.Literal("reading"), Type.Literal("uploading")]),
  files_done: Count,
  files_total: Count,
  bytes_done: Count,
  bytes_total: Count,
});

export const AgentMessage = Type.Union([
  Hello,
  /** `position` is the agent's when it sends this, not when the receipt came about. */
  closed({
    type: Type.Literal("receipt"),
    receipt: Receipt,
    position: Type.Optional(Position),
  }),
  closed({ type: Type.Literal("report"), report: Report }),
  ImportProgressMessage,
  AnswerMessage,
  closed({ type: Type.Literal("ping"), n: Count }),
]);
export type AgentMessage = Static<typeof AgentMessage>;
export const decodeAgentMessage = decoder(AgentMessage);

/** How far an import is. */
export type RunningImport = Omit<Extract<AgentMessage, { type: "progress" }>, "type">;

export const CentralMessage = Type.Union([
  closed({ type: Type.Literal("welcome"), epoch: Epoch, head_seq: Seq }),
  closed({ type: Type.Literal("entries"), entries: Type.Array(JournalItem) }),
  closed({ type: Type.Literal("receipt_ack"), seq: Seq, phase: ReceiptPhase }),
  /** The counts of a report are stored; over plain requests its 204 says so. */
  closed({ type: Type.Literal("report_ack"), counted: CountedBatch }),
  /** The cursor does not fit this store: take the snapshot. */
  closed({ type: Type.Literal("resync"), reason: Type.String() }),
  /** Central goes down: reconnect after so long, spread over the fleet. */
  closed({ type: Type.Literal("drain"), reconnect_after_ms: Count }),
  AskMessage,
  /** `held`: central waits for its store. What came before is kept, in its order, and acknowledged when that is back. Only for an agent that says it takes this. */
  closed({
    type: Type.Literal("pong"),
    n: Count,
    held: Type.Optional(Type.Literal(true)),
  }),
]);
export type CentralMessage = Static<typeof CentralMessage>;
export const decodeCentralMessage = decoder(CentralMessage);
