// `/active-viewset/…` and `/import-viewset/…`: versions of what a domain serves, which one the customer wants, and what agents proved.

import { Type, type Static } from "typebox";
import { Count, Timestamp } from "../parts.ts";
import { body, Id, open, shape } from "./shape.ts";

const ActivationState = Type.Union([
  Type.Literal("applied"),
  Type.Literal("pending"),
  Type.Literal("failed"),
  Type.Literal("pinned"),
  Type.Literal("absent"),
]);
export type ActivationState = Static<typeof ActivationState>;

export const ViewsetVersion = open(
  {
    id: Id,
    name: Type.String(),
    comment: Type.String(),
    when_created: Timestamp,
    when_obsoleted: Type.Union([Timestamp, Type.Null()]),
    is_active: Type.Boolean({ description: "What the customer asked for." }),
    activation: Type.Union([ActivationState, Type.Null()], {
      description:
        "What the agents have proved; null if the version is not active. `failed`: it failed on one deployment. `pinned`: one deployment is pinned to another version. `pending`: one deployment has not proved it yet, or the domain is linked to none. A deployment for which no agent ever connected is absent and delays nothing. `absent`: all linked deployments are absent.",
    }),
    deployments: Type.Array(
      open({
        deployment_site_id: Id,
        state: ActivationState,
        error: Type.Optional(Type.String()),
        /** The version that is served instead of one that failed, or because the deployment is pinned. */
        serving: Type.Optional(open({ viewset_id: Id, viewset_name: Type.String() })),
        last_seen: Type.Optional(Timestamp),
      }),
    ),
  },
  {
    title: "CustomerViewsetVersion",
    examples: [
      {
        id: 61,
        name: "spring",
        comment: "",
        when_created: "2026-11-22T12:00:00.000Z",
        when_obsoleted: null,
        is_active: true,
        activation: "applied",
        deployments: [{ deployment_site_id: 7, state: "applied" }],
      },
    ],
  },
);
export type ViewsetVersion = Static<typeof ViewsetVersion>;
export const viewsetVersionShape = shape(ViewsetVersion);

export const viewsetActivate = body(
  {},
  [
    "id",
    "name",
    "comment",
    "when_created",
    "when_obsoleted",
    "is_active",
    "activation",
    "deployments",
  ],
  { examples: [{}] },
);

export const viewsetImport = body({}, [], { examples: [{}] });

export const ImportStarted = open(
  { status: Type.Literal("ok") },
  { title: "ImportStarted", examples: [{ status: "ok" }] },
);
export type ImportStarted = Static<typeof ImportStarted>;
export const importStartedShape = shape(ImportStarted);

const importExample = {
  status: "done",
  import_id: "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
  when_started: "2026-11-22T12:00:00.000Z",
  when_ended: "2026-11-22T12:00:09.000Z",
  viewset_id: 62,
  files: 812,
  bytes: 45_100_220,
};

export const ImportProgress = open(
  {
    status: Type.Union([Type.Literal("started"), Type.Literal("done"), Type.Literal("failed")]),
    import_id: Type.String(),
    when_started: Timestamp,
    when_ended: Type.Union([Timestamp, Type.Null()]),
    /** The progress of an activation that is running on a connected agent. */
    progress: Type.Optional(
      open({
        phase: Type.String(),
        files_done: Count,
        files_total: Count,
        bytes_done: Count,
        bytes_total: Count,
      }),
    ),
    /** The viewset of an import that is done. */
    viewset_id: Type.Optional(Id),
    files: Type.Optional(Count),
    bytes: Type.Optional(Count),
    /** The error of an import that failed. */
    error: Type.Optional(Type.String()),
  },
  { title: "ImportProgress", examples: [importExample] },
);
export type ImportProgress = Static<typeof ImportProgress>;
export const importProgressShape = shape(ImportProgress);
