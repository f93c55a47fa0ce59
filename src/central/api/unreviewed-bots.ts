// `/unreviewed-bots/`: which bots visited each domain from addresses in no list, and what the policy in force
// says about them.

import type { BotClass } from "../../core/serving/verdict.ts";
import { botClassWords } from "../../core/serving/bot-class-words.ts";
import { classesOtherwise } from "../../wire/customer/bot-classes.ts";
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
  const access = own ?? general ?? false;
  const source =
    own !== null
      ? "policy of the domain"
      : general !== null
        ? "general policy"
        : "by default: no policy is set";
  const otherwise = classesOtherwise(access, classes);
  const exceptions = [
    ...(otherwise.length === 0 ? [] : [`${manyOf(otherwise)} ${access ? "can not" : "can"}`]),
    ...subDomainsOtherwise(access, otherwise, subDomains),
  ].map((exception) => `; ${exception}`);
  return `Unreviewed bots ${verb(access)} the domain (${source})${exceptions.join("")}.`;
}

/** Says what holds for the sub-domains where that is not what holds for the main domain. */
function subDomainsOtherwise(
  access: boolean,
  otherwise: readonly BotClass[],
  subDomains: Said["subDomains"],
): readonly string[] {
  const subs = subDomains.map((sub) => ({
    ...sub,
    otherwise: classesOtherwise(sub.own, sub.classes),
  }));
  const differing = subs.filter(
    (sub) => sub.own !== access || sub.otherwise.join() !== otherwise.join(),
  );
  // After a word on classes "they" would be those.
  const who = otherwise.length === 0 ? "they" : "unreviewed bots";
  const plain = (said: boolean): string =>
    namesOf(differing.filter((sub) => sub.own === said && sub.otherwise.length === 0));
  const byClass = namesOf(differing.filter((sub) => sub.otherwise.length > 0));
  return [
    ...[!access, access].flatMap((said) =>
      plain(said) === "" ? [] : [`${who} ${verb(said)} ${plain(said)}`],
    ),
    ...(byClass === "" ? [] : [`at ${byClass} the class of a bot decides`]),
  ];
}

function namesOf(subDomains: readonly { readonly name: string }[]): string {
  const rest = subDomains.length - subDomainsNamed;
  return [
    ...subDomains.slice(0, subDomainsNamed).map(({ name }) => name),
    ...(rest > 0 ? [`${rest} more sub-domains`] : []),
  ].join(", ");
}

const manyOf = (classes: readonly BotClass[]): string =>
  classes.map((botClass) => botClassWords[botClass].many).join(", ");

function verb(access: boolean): string {
  return access ? "can access" : "can not access";
}
