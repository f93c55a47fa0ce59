// What agents prove about clears, marks and removals, as the API tells it and waits for it.

import { Type } from "typebox";
import type { QueryParameter } from "./operation.ts";

export const waitDefaultS = 5;
export const waitMaxS = 30;

/** The progress at an agent, or at a deployment. */
export const ProofProgress = Type.Union([
  Type.Literal("applied"),
  Type.Literal("pending"),
  Type.Literal("failed"),
]);

/** The parameter of an operation that waits even without it. */
export const waitParameter: QueryParameter = {
  schema: { type: "number", minimum: 0, maximum: waitMaxS, default: waitDefaultS },
  description:
    "How many seconds to wait at most. The answer comes as soon as each connected instance has reported; for one that has no link to central nobody waits, and the answer tells of it.",
};

/** The parameter of an operation that tells of deployments only if it is given. */
export const optionalWaitParameter: QueryParameter = {
  schema: { type: "number", minimum: 0, maximum: waitMaxS },
  description:
    "How many seconds to wait at most until each connected instance has reported; for one that has no link to central nobody waits. The answer then has `deployments`, also with 0.",
};
