// What agents prove, as the API tells it and waits for it: of clears, marks and removals.

import { Type } from "typebox";
import type { QueryParameter } from "./operation.ts";

export const waitDefaultS = 5;
export const waitMaxS = 30;

/** What came of it at an agent, or a deployment. */
export const ProofProgress = Type.Union([
  Type.Literal("applied"),
  Type.Literal("pending"),
  Type.Literal("failed"),
]);

/** Of an operation that waits also where it is absent. */
export const waitParameter: QueryParameter = {
  schema: { type: "number", minimum: 0, maximum: waitMaxS, default: waitDefaultS },
  description: "How many seconds to wait until the connected deployments have reported.",
};

/** Of an operation that tells of deployments only where it is there. */
export const optionalWaitParameter: QueryParameter = {
  schema: { type: "number", minimum: 0, maximum: waitMaxS },
  description:
    "How many seconds to wait until the connected deployments have reported. The answer then has `deployments`, also with 0.",
};
