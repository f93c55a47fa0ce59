// `/unreviewed-bots/`: bots that nobody reviewed, by domain.

import { Type, type Static } from "typebox";
import { Id, open, shape } from "./shape.ts";

export const UnreviewedDomain = open({
  /** Of the domain. */
  id: Id,
  domain_name: Type.String(),
  /** A sentence: whether unreviewed bots can access the domain, and by which policy. */
  domain_policy: Type.String(),
  bots: Type.Array(
    open({
      name: Type.String(),
      description: Type.Union([Type.String(), Type.Null()]),
      /** Of the last 30 days. */
      requests: Type.Integer({ minimum: 0 }),
    }),
  ),
});
export type UnreviewedDomain = Static<typeof UnreviewedDomain>;
export const unreviewedDomainShape = shape(UnreviewedDomain);
