// `/unreviewed-bots/`: bots that nobody reviewed, by domain.

import { Type, type Static } from "typebox";
import { Id, open, shape } from "./shape.ts";

export const UnreviewedDomain = open(
  {
    id: Id,
    domain_name: Type.String(),
    domain_policy: Type.String({
      description:
        "A sentence that says whether unreviewed bots can access the domain, by which policy, and for which classes of bots and sub-domains it is otherwise.",
    }),
    bots: Type.Array(
      open({
        name: Type.String(),
        description: Type.Union([Type.String(), Type.Null()]),
        requests: Type.Integer({ minimum: 0, description: "Requests of the last 30 days." }),
      }),
    ),
  },
  {
    title: "UnreviewedBots",
    description: "Bots from addresses in no list, for one domain, the most frequent first.",
    examples: [
      {
        id: 12,
        domain_name: "www.example.com",
        domain_policy: "Unreviewed bots can not access the domain (by default: no policy is set).",
        bots: [{ name: "ExampleBot", description: null, requests: 118 }],
      },
    ],
  },
);
export type UnreviewedDomain = Static<typeof UnreviewedDomain>;
export const unreviewedDomainShape = shape(UnreviewedDomain);
