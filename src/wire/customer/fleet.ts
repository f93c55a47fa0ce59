// `/fleet/`: what of each of the customer's deployment sites stands where.

import { Type, type Static } from "typebox";
import { Timestamp } from "../parts.ts";
import { Id, open, shape } from "./shape.ts";

const orNull = (description: string) => Type.Union([Type.Number(), Type.Null()], { description });

const FleetWarning = open({
  code: Type.String({ description: "As in docs/warnings.md." }),
  text: Type.String(),
  hint: Type.String(),
});

export const FleetInstance = open(
  {
    instance_id: Type.String(),
    host: Type.Union([Type.String(), Type.Null()], {
      description:
        "What the agent's setting `edge.server_name` calls its host; null if it says nothing.",
    }),
    agent_version: Type.Optional(
      Type.String({ description: "Absent if the agent did not tell it." }),
    ),
    is_behind: Type.Optional(
      Type.Boolean({
        description:
          "Whether its release is older than the newest accelerator package; absent if either is not known.",
      }),
    ),
    link: Type.Unsafe<"channel" | "polling" | "none">({
      enum: ["channel", "polling", "none"],
      description:
        "How it is in touch with central at this moment: by a channel; by polls, because it can have no channel; or not at all.",
    }),
    last_seen: Timestamp,
    is_log_agent_reporting_data: Type.Boolean({
      description:
        "Whether it was seen in the last 3 minutes and delivered its logs in that time, or confirmed that it holds none.",
    }),
    log_lag_seconds: orNull(
      "Seconds since it last delivered request records, or said that it holds none back, to within ten seconds: deliveries are noted no more often. What it holds since then is no older, but for a backlog that is still on its way. Null if it never did.",
    ),
    entries_behind: orNull(
      "How many entries of its site's journal it has not told to be done. Null if it told no position in this journal.",
    ),
    warnings: Type.Array(FleetWarning, {
      description:
        "What its last report warned of, and what central finds at it. To a token for some domains each warning is told in general words, without what it concerns.",
    }),
  },
  { title: "FleetInstance" },
);
export type FleetInstance = Static<typeof FleetInstance>;

export const FleetSite = open(
  {
    deployment_site_id: Id,
    name16: Type.String(),
    deployment_tags: Type.String(),
    domains: Type.Array(Type.String(), {
      description: "The main domains that are linked to it and that the token is for.",
    }),
    instances: Type.Array(FleetInstance, {
      description:
        "Each state directory of an accelerator host that was seen in the last day; if none was, the one seen last. Empty if no agent ever connected.",
    }),
  },
  { title: "FleetSite" },
);
export type FleetSite = Static<typeof FleetSite>;

export const Fleet = open(
  {
    heard_since: Type.Optional({
      ...Timestamp,
      description:
        "Since when agents can have connected: when central started. A host that was seen before and has no link may only not have come back yet. Absent from a central of before.",
    }),
    sites: Type.Array(FleetSite),
  },
  {
    title: "Fleet",
    description:
      "In order of id. A token for some domains sees the deployment sites that one of them is linked to.",
    examples: [
      {
        heard_since: "2026-11-30T06:00:00.000Z",
        sites: [
          {
            deployment_site_id: 7,
            name16: "5f0c9a7be3d21846",
            deployment_tags: "production,eu",
            domains: ["www.example.com"],
            instances: [
              {
                instance_id: "3f0c2a9d5b7e41c8",
                host: "edge-1",
                agent_version: "0.1.0",
                is_behind: false,
                link: "channel",
                last_seen: "2026-11-30T08:15:00.000Z",
                is_log_agent_reporting_data: true,
                log_lag_seconds: 4,
                entries_behind: 0,
                warnings: [
                  {
                    code: "disk_low",
                    text: "the disk of /var/lib/accel-agent has 2 GiB left",
                    hint: "Make room.",
                  },
                ],
              },
            ],
          },
        ],
      },
    ],
  },
);
export type Fleet = Static<typeof Fleet>;
export const fleetShape = shape(Fleet);
