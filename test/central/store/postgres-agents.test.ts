// What the agents' side promises, over PostgreSQL.

import { testOnPostgres } from "../../support/on-postgres.ts";

testOnPostgres({
  blobs: async () => import("../agents/blobs.test.ts"),
  channel: async () => import("../agents/channel.test.ts"),
  corrections: async () => import("../agents/corrections.test.ts"),
  imports: async () => import("../agents/imports.test.ts"),
  journal: async () => import("../agents/journal.test.ts"),
  "policy-classes": async () => import("../agents/policy-classes.test.ts"),
  positions: async () => import("../agents/positions.test.ts"),
  unreviewed: async () => import("../agents/unreviewed.test.ts"),
  vault: async () => import("../agents/vault.test.ts"),
  token: async () => import("../agents/token.test.ts"),
});
