// `/session/`: a browser signs in, sees who it is, and signs out.

import { Type, type Static } from "typebox";
import { Id, open, shape } from "./shape.ts";
import { ApiToken } from "./token.ts";

export const ApiSession = open(
  {
    username: Type.String(),
    user_id: Id,
    customer_id: Id,
    role: ApiToken.properties.role,
    domains: ApiToken.properties.domains,
    may_read_logs: Type.Boolean({
      description: "False after the operator withdrew it from the user.",
    }),
    when_expires: Type.Union([Type.String(), Type.Null()], {
      description: "When the token ends; null: not before it is revoked.",
    }),
  },
  {
    title: "ApiSession",
    description: "Who asks, and what the token may do.",
    examples: [
      {
        username: "anna",
        user_id: 5,
        customer_id: 3,
        role: "owner",
        domains: null,
        may_read_logs: true,
        when_expires: "2026-11-28T20:00:00.000Z",
      },
    ],
  },
);
export type ApiSession = Static<typeof ApiSession>;
export const sessionShape = shape(ApiSession);
