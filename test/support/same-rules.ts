// The rules about queries of a serving rig: none are ever changed.

import type { ServingPorts } from "../../src/agent/steering/serving.ts";

/** For what is no test of rules about queries: they are never changed. */
export const sameRules: ServingPorts["queryRules"] = {
  prepare: async () => () => undefined,
  whileSame: async (give) => give(),
};
