// `/unreviewed-bots/`: which bots visited each domain from addresses in no list, and what the policy in force
// says about them.

import {
  accessInForce,
  classListText,
  type AccessInForce,
} from "../../wire/customer/bot-classes.ts";
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

type Said = Pick<UnreviewedRecord, "access" | "classes" | "subDomains">;

/** Says what holds for the main domain, why, and where it is otherwise: for classes of bots, and for sub-domains. */
export function policySentence({ access: { own, general }, classes, subDomains }: Said): string {
  const said = own ?? general ?? false;
  const source =
    own !== null
      ? "policy of the domain"
      : general !== null
        ? "general policy"
        : "by default: no policy is set";
  const main = accessInForce(said, classes);
  const why = main.access === said ? source : `${source}, class by class`;
  const exceptions = [...classesOtherwise(main), ...subDomainsOtherwise(main, subDomains)].map(
    (exception) => `; ${exception}`,
  );
  return `Unreviewed bots ${verb(main.access)} the domain (${why})${exceptions.join("")}.`;
}

function classesOtherwise({ access, otherwise }: AccessInForce): readonly string[] {
  return otherwise.length === 0
    ? []
    : [`${classListText(otherwise)} ${access ? "can not" : "can"}`];
}

/** Says what holds for the sub-domains where that is not what holds for the main domain; where classes differ, last. */
function subDomainsOtherwise(
  main: AccessInForce,
  subDomains: Said["subDomains"],
): readonly string[] {
  const textOf = ({ access, otherwise }: AccessInForce): string => `${access} ${otherwise.join()}`;
  const differing = subDomains
    .map(({ name, own, classes }) => ({ name, inForce: accessInForce(own, classes) }))
    .filter(({ inForce }) => textOf(inForce) !== textOf(main));
  const groups = [...Map.groupBy(differing, ({ inForce }) => textOf(inForce)).values()].flatMap(
    (subs) => subs.slice(0, 1).map(({ inForce }) => ({ names: namesOf(subs), ...inForce })),
  );
  const rank = ({ access, otherwise }: AccessInForce): number =>
    2 * otherwise.length + Number(access === main.access);
  // After a word on classes "they" would be those.
  const isPlain = [main, ...groups].every(({ otherwise }) => otherwise.length === 0);
  const who = isPlain ? "they" : "unreviewed bots";
  return groups
    .toSorted((one, other) => rank(one) - rank(other))
    .flatMap((group) => [
      `${who} ${verb(group.access)} ${group.names}`,
      ...classesOtherwise(group).map((exception) => `${exception} there`),
    ]);
}

function namesOf(subDomains: readonly { readonly name: string }[]): string {
  const rest = subDomains.length - subDomainsNamed;
  return [
    ...subDomains.slice(0, subDomainsNamed).map(({ name }) => name),
    ...(rest > 0 ? [`${rest} more sub-domains`] : []),
  ].join(", ");
}

function verb(access: boolean): string {
  return access ? "can access" : "can not access";
}
