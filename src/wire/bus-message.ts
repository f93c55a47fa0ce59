// What the centrals at one store tell each other: hints of what is in the store, which channels each of them holds, and questions to agents at another's channels.
//
// Any message may be lost, and none is needed for anything to be right: whoever may have missed one asks the store. A central of another release may say more than is
// known here, so members that nobody knows are let through, and messages of unknown kinds are left out.

import { Type, type Static } from "typebox";
import { changeTopics, type ChangeTopic } from "./customer/events.ts";
import { AnswerMessage, DryRunQuestion, askDeadlineMsMax } from "./ask.ts";
import { ImportProgressMessage } from "./channel.ts";
import { Count, InstanceId, Seq } from "./parts.ts";
import { decoder } from "./validate.ts";

/** Random id of a central's process. */
export const centralIdForm = /^[0-9a-f]{16}$/;

const SiteId = Seq;
const Topics = Type.Array(Type.Unsafe<ChangeTopic>(Type.Enum([...changeTopics])));
const PolledBy = Type.Object({ site_id: SiteId, instance_id: InstanceId });

export const BusMessage = Type.Union([
  /** The journals of these sites grew. */
  Type.Object({ kind: Type.Literal("journal"), site_ids: Type.Array(SiteId) }),
  /** Receipts were stored; without a site, something else that receipts are waited for is over. */
  Type.Object({
    kind: Type.Literal("proved"),
    site_id: Type.Optional(SiteId),
    seqs: Type.Array(Seq),
    /** Imports that are over. */
    import_ids: Type.Array(Type.String()),
  }),
  Type.Object({
    kind: Type.Literal("customer"),
    customer_id: Seq,
    topics: Topics,
    domains: Type.Array(Type.String()),
  }),
  Type.Object({ kind: Type.Literal("site"), site_id: SiteId, topics: Topics }),
  /** Channels of the site are to be closed: its credentials were revoked. */
  Type.Object({ kind: Type.Literal("shut"), site_id: SiteId }),
  /** The teller holds these channels now. */
  Type.Object({
    kind: Type.Literal("here"),
    channels: Type.Array(
      Type.Object({
        id: Seq,
        site_id: SiteId,
        instance_id: InstanceId,
        boot_id: Type.String(),
      }),
    ),
  }),
  /** The teller does not hold these channels any more. `returns`: it stops, so that their agents come to another central within moments. */
  Type.Object({
    kind: Type.Literal("gone"),
    ids: Type.Array(Seq),
    returns: Type.Optional(Type.Boolean()),
  }),
  /** Open channels of the teller on which nothing was heard for too long, with the milliseconds. Told again every second. */
  Type.Object({
    kind: Type.Literal("silent"),
    channels: Type.Array(Type.Object({ id: Seq, ms: Count })),
  }),
  /** Instances that are in touch with the teller by polls. Told again every few seconds. */
  Type.Object({ kind: Type.Literal("polls"), polls: Type.Array(PolledBy) }),
  Type.Object({ kind: Type.Literal("progress"), progress: ImportProgressMessage }),
  /** Is to be put to each agent of the site that has a channel at whom this is sent to. */
  Type.Object({
    kind: Type.Literal("ask"),
    id: Type.String(),
    site_id: SiteId,
    deadline_ms: Type.Integer({ minimum: 1, maximum: askDeadlineMsMax }),
    dry_run: DryRunQuestion,
  }),
  /** What those agents answered; null where none came in time. */
  Type.Object({
    kind: Type.Literal("answer"),
    id: Type.String(),
    answers: Type.Array(
      Type.Object({
        instance_id: Type.String(),
        answer: Type.Union([AnswerMessage, Type.Null()]),
      }),
    ),
  }),
  /** The teller may have said something that nobody heard. */
  Type.Object({ kind: Type.Literal("missed") }),
  /** The teller ends. */
  Type.Object({ kind: Type.Literal("bye") }),
]);
export type BusMessage = Static<typeof BusMessage>;

export const decodeBusMessage = decoder(BusMessage);
