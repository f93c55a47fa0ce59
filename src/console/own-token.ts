// Which of a customer's tokens are sessions of browsers, and which one is the session that asks. Pure.

import type { ApiSession } from "../wire/customer/session.ts";
import type { ApiToken } from "../wire/customer/token.ts";

/** The name that central gives the tokens of sessions that began with a password. */
const sessionTokenName = "session of the console";

export function isSessionToken({ name }: Pick<ApiToken, "name">): boolean {
  return name === sessionTokenName;
}

/**
 * The id of the session's own token. Central does not tell it, but the token is among those in force: it is
 * known where a single one has the session's user, role, domains and end.
 */
export function ownTokenId(session: ApiSession, tokens: readonly ApiToken[]): number | undefined {
  const termsOf = (one: Pick<ApiToken, "username" | "role" | "domains" | "when_expires">): string =>
    JSON.stringify([
      one.username,
      one.role,
      one.domains === null ? null : one.domains.toSorted(),
      one.when_expires === null ? null : Date.parse(one.when_expires),
    ]);
  const asked = termsOf(session);
  const same = tokens.filter((token) => termsOf(token) === asked);
  return same.length === 1 ? same[0]?.id : undefined;
}
