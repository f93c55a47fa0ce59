// What the command `accel-central rollout` asks a running central over its control socket.

import { Type, type Static } from "typebox";
import { Id } from "./customer/shape.ts";
import { ReleaseVersion } from "./rollout.ts";
import { closed, decoder } from "./validate.ts";

const operator = Type.String({ minLength: 1, maxLength: 100 });
const atLeast = (minimum: number, maximum: number) => Type.Integer({ minimum, maximum });
const dayMs = 86_400_000;

/** What may be set of a plan; what is absent has its default (`rolloutDefaults`). */
export const RolloutLimits = closed({
  canary: Type.Optional(atLeast(1, 1_000)),
  wave_percent: Type.Optional(atLeast(1, 100)),
  soak_ms: Type.Optional(atLeast(1_000, dayMs)),
  grace_ms: Type.Optional(atLeast(1_000, dayMs)),
  install_ms: Type.Optional(atLeast(10_000, dayMs)),
  silence_ms: Type.Optional(atLeast(10_000, dayMs)),
  bound_ms: Type.Optional(atLeast(60_000, 30 * dayMs)),
  restarts: Type.Optional(atLeast(0, 1_000)),
  /** Per cent of all answers. */
  errors_percent: Type.Optional(Type.Number({ minimum: 0, maximum: 100 })),
  misses: Type.Optional(atLeast(1, 10_000)),
});
export type RolloutLimits = Static<typeof RolloutLimits>;

export const decodeRolloutStart = decoder(
  closed({
    operator,
    customer_id: Id,
    release: ReleaseVersion,
    /** All sites of the customer where it is absent. */
    tag: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    limits: RolloutLimits,
  }),
);
/** Absent: the last one of all. */
export const decodeRolloutStatus = decoder(closed({ rollout_id: Type.Optional(Id) }));
export const decodeRolloutList = decoder(closed({ customer_id: Type.Optional(Id) }));
export const decodeRolloutChange = decoder(
  closed({ operator, rollout_id: Id, reason: Type.Optional(Type.String({ maxLength: 200 })) }),
);
