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
  Type.Literal("split"),
]);
export type ActivationState = Static<typeof ActivationState>;

const FleetState = Type.Union([
  Type.Literal("preparing"),
  Type.Literal("activated"),
  Type.Literal("replaced"),
  Type.Literal("aborted"),
  Type.Literal("returned"),
]);

const FleetActivation = open(
  {
    state: FleetState,
    reason: Type.Union([Type.String(), Type.Null()]),
    when_started: Timestamp,
    deadline: Timestamp,
    when_ended: Type.Union([Timestamp, Type.Null()]),
    votes: Type.Array(
      open({
        deployment_site_id: Id,
        instance_id: Type.String(),
        vote: Type.Union([Type.Literal("yes"), Type.Literal("no"), Type.Literal("awaited")]),
        reason: Type.Optional(Type.String()),
      }),
    ),
  },
  {
    description:
      "The version's latest activation with `require: all`; absent if there is none, or if the version was activated in another way since. `preparing`: the instances are asked, and nothing has changed. `activated`: all voted for it, and it was decided for all. `aborted`: it was given up before the decision, for the reason told, and nothing has changed. `returned`: its trial failed on an instance, and all went back to the version before. `replaced`: another version was activated since. A vote is `awaited` of an instance that has not voted, or had not when it was given up.",
  },
);

export const activationsShown = 20;

export const ViewsetVersion = open(
  {
    id: Id,
    name: Type.String(),
    comment: Type.String(),
    when_created: Timestamp,
    when_obsoleted: Type.Union([Timestamp, Type.Null()]),
    activations: Type.Array(Timestamp, {
      description: `When it was made the active one, by a customer or because a trial of another failed: the last ${activationsShown} times, the oldest first. Those before central kept them are not there.`,
    }),
    is_active: Type.Boolean({ description: "What the customer asked for." }),
    activation: Type.Union([ActivationState, Type.Null()], {
      description:
        "What the agents have proved; null if the version is not active. `failed`: it failed on one deployment. `pinned`: one deployment is pinned to another version. `pending`: one deployment has not proved it yet, or the domain is linked to none. A deployment for which no agent ever connected is absent and delays nothing. `absent`: all linked deployments are absent. `split`: it was activated with `require: all`, and a deployment could not follow.",
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
    fleet: Type.Optional(FleetActivation),
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
        activations: ["2026-11-22T12:05:00.000Z"],
        is_active: true,
        activation: "applied",
        deployments: [{ deployment_site_id: 7, state: "applied" }],
      },
    ],
  },
);
export type ViewsetVersion = Static<typeof ViewsetVersion>;
export const viewsetVersionShape = shape(ViewsetVersion);

/** The deadline of an activation on all or none, in seconds. */
export const fleetDeadline = { leastS: 5, mostS: 21_600, defaultS: 300 } as const;

export const viewsetActivate = body(
  {
    require: Type.Optional(
      Type.Unsafe<"each" | "all">({
        enum: ["each", "all"],
        description:
          "`each`, the default: every deployment activates it as soon as it can. `all`: all connected instances prepare it first, and it is activated on all of them or on none; 409 if none is connected.",
      }),
    ),
    deadline_s: Type.Optional(
      Type.Integer({
        minimum: fleetDeadline.leastS,
        maximum: fleetDeadline.mostS,
        default: fleetDeadline.defaultS,
        description:
          "With `require: all`: the seconds within which all must have prepared it; it is given up otherwise.",
      }),
    ),
  },
  [
    "id",
    "name",
    "comment",
    "when_created",
    "when_obsoleted",
    "activations",
    "is_active",
    "activation",
    "deployments",
    "fleet",
  ],
  { examples: [{}, { require: "all" }] },
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
    /** What central waits for before it can take the files of an import that is running; absent where nothing holds it up at central. */
    waits_for: Type.Optional(Type.String()),
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
