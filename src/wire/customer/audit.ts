// `/audit/`: the customer's own lines of the audit trail.

import { Type, type Static } from "typebox";
import { Timestamp } from "../parts.ts";
import type { QueryParameter } from "./operation.ts";
import { Id, open, shape } from "./shape.ts";

export const auditLimitMax = 200;
export const auditLimitDefault = 50;

const text = (description: string) => Type.Optional(Type.String({ description }));
const numberOrNull = (description: string) =>
  Type.Union([Type.Integer(), Type.Null()], { description });

const AuditedChange = open(
  {
    id: Id,
    when: Timestamp,
    via: Type.Unsafe<"api" | "operator" | "agent" | "central">({
      enum: ["api", "operator", "agent", "central"],
      description:
        "Who did it: a customer by this API, the operator of central, a host that joined, or central by itself.",
    }),
    username: Type.Union([Type.String(), Type.Null()], {
      description: "The user by whose credentials it was done; null if it was no user.",
    }),
    token_id: numberOrNull(
      "The token with which it was done; null if it was none, or was not noted.",
    ),
    operation: Type.String({
      description:
        "The id of the operation in the OpenAPI document, or the operator's command. Lines from before it was noted have method and path.",
    }),
    method: text("Of a request of this API."),
    path: text(
      "The path of the operation, with names of its parameters; `detail.ids` has their values.",
    ),
    address: text("From where a request of this API came."),
    detail: open(
      {
        ids: Type.Record(Type.String(), Type.Unknown()),
        change: Type.Unknown(),
      },
      {
        description:
          "Ids of what was changed, and what was asked for. Secrets are never in it; long texts are represented by length and digest.",
      },
    ),
  },
  { title: "AuditedChange" },
);
export type AuditedChange = Static<typeof AuditedChange>;

export const AuditedChanges = Type.Array(AuditedChange, {
  title: "AuditedChanges",
  description:
    "The newest first. A page may have fewer lines than asked for, or none, and yet lead on: central looks at a bounded number of lines at a time.",
  examples: [
    [
      {
        id: 812,
        when: "2026-11-30T08:15:00.000Z",
        via: "api",
        username: "anna",
        token_id: 12,
        operation: "clearCache",
        method: "POST",
        path: "/clear-accelerator-cache/:domain/",
        address: "192.0.2.7",
        detail: {
          ids: { clear_id: "6f1d2c3b4a596877", domain: "www.example.com", by_token_id: 12 },
          change: { url_path_patterns: ["path:css"] },
        },
      },
    ],
  ],
});
export const auditedChangesShape = shape(AuditedChanges);

const time = { type: "string", examples: ["2026-11-22T00:00:00Z"] };
const timeText = "seconds since the epoch or an ISO 8601 time, inclusive.";
export const auditParameters: Readonly<Record<string, QueryParameter>> = {
  since: { schema: time, description: `Not before: ${timeText}` },
  until: { schema: time, description: `Not after: ${timeText}` },
  username: {
    schema: { type: "string", maxLength: 150, examples: ["anna"] },
    description: "Only what was done by this user's credentials.",
  },
  operation: {
    schema: { type: "string", maxLength: 200, examples: ["clearCache"] },
    description: "Only this operation.",
  },
  limit: {
    schema: {
      type: "integer",
      minimum: 1,
      maximum: auditLimitMax,
      default: auditLimitDefault,
    },
    description: "The largest number of lines.",
  },
  after: {
    schema: { type: "string" },
    description: "The cursor in the header `Link` of the page before.",
  },
};
