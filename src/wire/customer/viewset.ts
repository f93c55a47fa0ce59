// `/active-viewset/…` and `/import-viewset/…`: versions of what a domain serves, which one the customer wants, and what agents proved.

import { Type, type Static } from "typebox";
import { Count, Timestamp } from "../parts.ts";
import { body, Id, open, shape } from "./shape.ts";

const ActivationState = Type.Union([
  Type.Literal("applied"),
  Type.Literal("pending"),
  Type.Literal("failed"),
  Type.Literal("pinned"),
]);
export type ActivationState = Static<typeof ActivationState>;

export const ViewsetVersion = open({
  id: Id,
  name: Type.String(),
  comment: Type.String(),
  when_created: Timestamp,
  when_obsoleted: Type.Union([Timestamp, Type.Null()]),
  /** What the customer asked for. */
  is_active: Type.Boolean(),
  /**
   * What the agents proved; null where it is not active. Failed on one deployment is failed, pinned to another version on one is pinned; served by none
   * yet is pending.
   */
  activation: Type.Union([ActivationState, Type.Null()]),
  deployments: Type.Array(
    open({
      deployment_site_id: Id,
      state: ActivationState,
      error: Type.Optional(Type.String()),
      /** Of one that failed or is pinned: the version that is served in its place. */
      serving: Type.Optional(open({ viewset_id: Id, viewset_name: Type.String() })),
      last_seen: Type.Optional(Timestamp),
    }),
  ),
});
export type ViewsetVersion = Static<typeof ViewsetVersion>;
export const viewsetVersionShape = shape(ViewsetVersion);

export const viewsetActivate = body({}, [
  "id",
  "name",
  "comment",
  "when_created",
  "when_obsoleted",
  "is_active",
  "activation",
  "deployments",
]);

export const viewsetImport = body({});

export const ImportStarted = open({ status: Type.Literal("ok") });
export type ImportStarted = Static<typeof ImportStarted>;
export const importStartedShape = shape(ImportStarted);

export const ImportProgress = open({
  status: Type.Union([Type.Literal("started"), Type.Literal("done"), Type.Literal("failed")]),
  import_id: Type.String(),
  when_started: Timestamp,
  when_ended: Type.Union([Timestamp, Type.Null()]),
  /** While it runs and the agent is connected. */
  progress: Type.Optional(
    open({
      phase: Type.String(),
      files_done: Count,
      files_total: Count,
      bytes_done: Count,
      bytes_total: Count,
    }),
  ),
  /** Of an import that is done. */
  viewset_id: Type.Optional(Id),
  files: Type.Optional(Count),
  bytes: Type.Optional(Count),
  /** Of one that failed. */
  error: Type.Optional(Type.String()),
});
export type ImportProgress = Static<typeof ImportProgress>;
export const importProgressShape = shape(ImportProgress);
