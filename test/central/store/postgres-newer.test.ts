// What the customer API and agents are promised, at a store to which a release to come has added columns, indexes and tables.

import { testOnPostgres } from "../../support/on-postgres.ts";
import { bringTo, planted } from "../../support/planted-steps.ts";

testOnPostgres(
  {
    activation: async () => import("../api/activation.test.ts"),
    bots: async () => import("../api/bots.test.ts"),
    "cache-clear": async () => import("../api/cache-clear.test.ts"),
    fleet: async () => import("../api/fleet.test.ts"),
    isolation: async () => import("../api/isolation.test.ts"),
    people: async () => import("../api/people.test.ts"),
    viewsets: async () => import("../api/viewsets.test.ts"),
    journal: async () => import("../agents/journal.test.ts"),
    positions: async () => import("../agents/positions.test.ts"),
  },
  1,
  { bring: async (store) => bringTo(store, planted) },
);
