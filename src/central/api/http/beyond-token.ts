// What a token may not do: its role is too small for an endpoint, or the endpoint is about more than the domains
// that the token is for.

import { mayAct } from "../../../core/roles.ts";
import type { Actor } from "../../store/people/tokens.ts";
import { forbidden, type ProblemAnswer } from "./answer.ts";
import type { Endpoint } from "./endpoint.ts";

/** How many domains a refusal names. */
const domainsNamed = 5;

export function beyondToken(
  { id, needs }: Pick<Endpoint, "id" | "needs">,
  actor: Actor | undefined,
): ProblemAnswer | undefined {
  if (needs === undefined || actor === undefined) return undefined;
  const { role, domains } = actor;
  if (!mayAct(role, needs.role))
    return forbidden(`this token has the role ${role}; ${id} needs the role ${needs.role}`);
  if (needs.scope === "domain" || domains === null) return undefined;
  const more = domains.length - domainsNamed;
  const named = `${domains.slice(0, domainsNamed).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return forbidden(`this token is for ${named} alone; ${id} is about everything of the customer`);
}
