// `POST /agent-api/v1/release`: an agent says which release it runs and how that goes, and hears which one is wanted.
//
// It is a state that is asked for again and again, not an entry of the journal: a site's instances may differ in it, and who was away during a rollout is not to
// follow it afterwards. A central that is older answers 404; an agent that is older never asks.

import { Type, type Static } from "typebox";
import { closed, decoder } from "./validate.ts";
import { Count, InstanceId } from "./parts.ts";

/** The version of a Debian package of ours, which is also what an agent calls its own. */
export const releaseForm = /^[0-9][0-9A-Za-z.+~]{0,63}$/;
export const ReleaseVersion = Type.String({ pattern: releaseForm.source });
const OrderId = Type.String({ pattern: "^[0-9a-z-]{1,64}$" });

/** `taken`: heard of. `returned`: the release did not stay up, and the host runs the version before again. */
const OrderOutcome = Type.Union([
  Type.Literal("taken"),
  Type.Literal("installing"),
  Type.Literal("done"),
  Type.Literal("refused"),
  Type.Literal("failed"),
  Type.Literal("returned"),
]);

/** The most warnings that are told; beyond it is as bad. */
export const toldWarningsMax = 200;
export const toldReasonMax = 1_000;

export const ReleaseTold = closed({
  instance_id: InstanceId,
  /** Random for each start of the agent. */
  boot_id: Type.String({ minLength: 1, maxLength: 64 }),
  version: Type.String({ minLength: 1, maxLength: 64 }),
  /** Whether central may have another release installed: `off` unless the host allows it, `held` where its packages are. */
  takes: Type.Union([Type.Literal("yes"), Type.Literal("off"), Type.Literal("held")]),
  ready: Type.Boolean(),
  /** Answers to visitors since the start, and those of them with a status of 500 or more. */
  requests: Count,
  errors: Count,
  /** Codes of the health warnings of severity `warning` or `error`. */
  warnings: Type.Array(Type.String({ maxLength: 64 }), { maxItems: toldWarningsMax }),
  /** The order that it heard of last, and what came of it. */
  order: Type.Union([
    closed({
      id: OrderId,
      state: OrderOutcome,
      reason: Type.String({ maxLength: toldReasonMax }),
    }),
    Type.Null(),
  ]),
});
export type ReleaseTold = Static<typeof ReleaseTold>;
export const decodeReleaseTold = decoder(ReleaseTold);

export const ReleaseWanted = closed({
  /** Null: nobody wants another version than the one that runs. */
  order: Type.Union([closed({ id: OrderId, version: ReleaseVersion }), Type.Null()]),
  /** When to say it again. */
  ask_again_ms: Count,
});
export type ReleaseWanted = Static<typeof ReleaseWanted>;
export const decodeReleaseWanted = decoder(ReleaseWanted);
