// `/alerts/`: the alerts of the monitor, those that fire and those that ended.

import { Type, type Static } from "typebox";
import { Timestamp } from "../parts.ts";
import type { QueryParameter } from "./operation.ts";
import { unreachableBackendType } from "./notifications.ts";
import { Id, open, shape } from "./shape.ts";

/** The most alerts of one answer. */
export const alertsMax = 200;
export const alertDaysDefault = 7;
export const alertDaysMax = 90;

const Alert = open(
  {
    id: Id,
    type: Type.String({ description: "As in `GET /notifications/monitor/types/`." }),
    domain: Type.Union([Type.String(), Type.Null()]),
    deployment_site_id: Type.Union([Id, Type.Null()], {
      description:
        "The site whose hosts see it; null where several do, and for alerts from before it was noted.",
    }),
    text: Type.String(),
    when_began: Timestamp,
    when_ended: Type.Union([Timestamp, Type.Null()], { description: "Null while it goes on." }),
  },
  { title: "Alert" },
);
export type Alert = Static<typeof Alert>;

export const Alerts = Type.Array(Alert, {
  title: "Alerts",
  description: `The one that began last comes first; at most ${alertsMax}. An alert goes with its domain.`,
  examples: [
    [
      {
        id: 3,
        type: unreachableBackendType,
        domain: "www.example.com",
        deployment_site_id: 7,
        text: "edge-1 cannot reach the backend of www.example.com",
        when_began: "2026-11-30T08:15:00.000Z",
        when_ended: null,
      },
    ],
  ],
});
export const alertsShape = shape(Alerts);

export const alertParameters: Readonly<Record<string, QueryParameter>> = {
  since: {
    schema: { type: "string", examples: ["2026-11-22T00:00:00Z"] },
    description: `Beside the alerts that go on, those that ended since then: seconds since the epoch or an ISO 8601 time, at most ${alertDaysMax} days ago. ${alertDaysDefault} days ago where it is left out.`,
  },
};
