// `/unreviewed-bots/`: which bots visited each domain from addresses in no list, and what the policy in force
// says about them.

import { unreviewedDomainShape } from "../../wire/customer/unreviewed-bots.ts";
import { lists } from "../../wire/customer/operation.ts";
import type { UnreviewedDomain as Answered } from "../../wire/customer/unreviewed-bots.ts";
import { list } from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import type { UnreviewedRecord } from "../store/bots/unreviewed-bots.ts";
import { listUnreviewed } from "../store/bots/unreviewed-bots.ts";

const subDomainsNamed = 10;

export function unreviewedBotEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/unreviewed-bots/",
      id: "listUnreviewedBots",
      needs: { role: "read", scope: "domain" },
      summary: "List unreviewed bots of the last 30 days by domain, the most frequent first",
      gives: lists(unreviewedDomainShape),
      handle: async ({ actor, read }) =>
        list(async (range) =>
          read(async (work) => {
            const domains = await listUnreviewed(work, actor, range);
            return domains.map((domain) => answered(domain));
          }),
        ),
    }),
  ];
}

function answered(domain: UnreviewedRecord): Answered {
  return {
    id: domain.id,
    domain_name: domain.name,
    domain_policy: policySentence(domain),
    bots: domain.bots.map((bot) => ({ ...bot })),
  };
}

/** Says what holds for the main domain, why, and where it is otherwise. */
export function policySentence({
  access: { own, general },
  subDomains,
}: Pick<UnreviewedRecord, "access" | "subDomains">): string {
  const access = own ?? general ?? false;
  const source =
    own !== null
      ? "policy of the domain"
      : general !== null
        ? "general policy"
        : "by default: no policy is set";
  const others = subDomains.filter((sub) => sub.own !== access).map(({ name }) => name);
  const rest = others.length - subDomainsNamed;
  const names = [
    ...others.slice(0, subDomainsNamed),
    ...(rest > 0 ? [`${rest} more sub-domains`] : []),
  ].join(", ");
  const exception = names === "" ? "" : `; they ${verb(!access)} ${names}`;
  return `Unreviewed bots ${verb(access)} the domain (${source})${exception}.`;
}

function verb(access: boolean): string {
  return access ? "can access" : "can not access";
}
