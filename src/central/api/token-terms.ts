// What a token is asked to be, checked against what the customer has.

import { parseDomainName } from "../../core/ids.ts";
import type { ApiTokenCreate } from "../../wire/customer/token.ts";
import type { Work } from "../store/engine/work.ts";
import { ownersTerms, type Reach, type TokenTerms } from "../store/people/tokens.ts";
import { invalid, type ProblemAnswer } from "./http/answer.ts";
import { isProblem, mainDomain } from "./http/path-values.ts";

/** Returns the terms, with each domain once and as it is stored, or what is wrong with the domains. */
export async function termsOf(
  work: Work,
  reach: Reach,
  asked: Partial<ApiTokenCreate>,
): Promise<TokenTerms | ProblemAnswer> {
  const { name = ownersTerms.name, role = ownersTerms.role, lifetime_seconds: lifetimeS } = asked;
  const names = new Set<string>();
  for (const [at, text] of (asked.domains ?? []).entries()) {
    const domain = await mainDomain(work, reach, text);
    if (isProblem(domain)) {
      const isName = parseDomainName(text) !== undefined;
      const message = isName ? "is no main domain of this customer" : "is no domain name";
      return invalid([{ path: `/domains/${at}`, message }]);
    }
    names.add(domain.name);
  }
  return {
    name,
    role,
    domains: names.size === 0 ? null : [...names],
    whenExpires: lifetimeS === undefined || lifetimeS === null ? null : after(work.at, lifetimeS),
  };
}

function after(at: string, seconds: number): string {
  return new Date(Date.parse(at) + seconds * 1_000).toISOString();
}
