// Tokens of the customer API: whose each is, what it may do, where and for how long. A token is stored as its
// SHA-256 only.

import type { ApiToken } from "../../../wire/customer/token.ts";
import { roles, type Role } from "../../../core/roles.ts";
import type { Store } from "../engine/database.ts";
import { parts } from "../engine/parts.ts";
import type { PageRange, Work } from "../engine/work.ts";

/** What a caller reaches: everything of a customer, or the domains alone that its token names. */
export type Reach = {
  readonly customerId: number;
  /** Main domains; null: all, and what belongs to no domain. */
  readonly domains: readonly string[] | null;
};

/** Who asks. */
export type Actor = Reach & {
  readonly userId: number;
  readonly username: string;
  readonly mayReadLogs: boolean;
  readonly role: Role;
  /** Null for who came with a password. */
  readonly tokenId: number | null;
  /** Whether the token was made for a session of a browser. */
  readonly isSession: boolean;
  /** Whether the use of the token was noted within a minute. */
  readonly isUseTold: boolean;
  /** When the token ends, ISO 8601; null: not before it is revoked. */
  readonly whenExpires: string | null;
};

/** Returns what all tokens of a customer reach together. */
export function wholeCustomer(customerId: number): Reach {
  return { customerId, domains: null };
}

export function reaches({ domains }: Reach, mainDomain: string): boolean {
  return domains === null || domains.includes(mainDomain);
}

export type TokenTerms = {
  readonly name: string;
  readonly role: Role;
  readonly domains: readonly string[] | null;
  /** ISO 8601; null: until it is revoked. */
  readonly whenExpires: string | null;
  /** Whether it is made for a session of a browser, and goes with it. */
  readonly isSession?: boolean;
};

/** The terms of tokens that a trial, a recovery or the operator issues, if nothing else is said. */
export const ownersTerms: TokenTerms = {
  name: "",
  role: "owner",
  domains: null,
  whenExpires: null,
};

/** How many tokens of a customer may be in force at a time, sessions not counted. */
export const tokensMax = 1_000;
/** How exact `when_last_used` is: a token that is used all the time is not written at each request. */
const usedStepMs = 60_000;

/** Returns whoever a token stands for. Undefined if it is not in force. */
export async function userByToken(work: Work, tokenDigest: string): Promise<Actor | undefined> {
  const { tx, at } = work;
  const row = await tx
    .selectFrom("tokens")
    .innerJoin("users", "users.id", "tokens.user_id")
    .select(["users.id as user_id", "users.customer_id", "users.username", "users.may_read_logs"])
    .select(["tokens.id", "tokens.role", "tokens.domains", "tokens.when_expires"])
    .select(["tokens.when_last_used", "tokens.is_session"])
    .where("tokens.digest", "=", tokenDigest)
    .where("tokens.when_revoked", "is", null)
    .where("users.when_locked", "is", null)
    .executeTakeFirst();
  if (row === undefined || (row.when_expires !== null && row.when_expires <= at)) return undefined;
  const usedMs = row.when_last_used === null ? 0 : Date.parse(row.when_last_used);
  return {
    userId: row.user_id,
    customerId: row.customer_id,
    username: row.username,
    mayReadLogs: row.may_read_logs === 1,
    role: roleOf(row.role),
    domains: domainsOf(row.domains),
    tokenId: row.id,
    isSession: row.is_session === 1,
    isUseTold: Math.abs(Date.parse(at) - usedMs) < usedStepMs,
    whenExpires: row.when_expires,
  };
}

/** Notes that a token is used. */
export async function noteTokenUse({ tx, at }: Work, tokenId: number): Promise<void> {
  await tx.updateTable("tokens").set({ when_last_used: at }).where("id", "=", tokenId).execute();
}

/**
 * Whether an actor may still act. A request can be long on its way: its token may have been revoked meanwhile, and
 * what it would change could outlive it.
 */
export async function isInForce(
  { tx, at }: Work,
  { userId, tokenId }: Pick<Actor, "userId" | "tokenId">,
): Promise<boolean> {
  const user = await tx
    .selectFrom("users")
    .select("id")
    .where((one) => one.and({ id: userId, when_locked: null }))
    .executeTakeFirst();
  if (user === undefined || tokenId === null) return user !== undefined;
  const token = await tx
    .selectFrom("tokens")
    .select("when_expires")
    .where((one) => one.and({ id: tokenId, when_revoked: null }))
    .executeTakeFirst();
  return token !== undefined && (token.when_expires === null || token.when_expires > at);
}

/** Returns those of the tokens that are in force. */
export async function tokensInForce(
  { tx, at }: Work,
  ids: readonly number[],
): Promise<ReadonlySet<number>> {
  const found = new Set<number>();
  for (const part of parts(ids)) {
    const rows = await tx
      .selectFrom("tokens")
      .innerJoin("users", "users.id", "tokens.user_id")
      .select(["tokens.id", "tokens.when_expires"])
      .where("tokens.id", "in", part)
      .where("tokens.when_revoked", "is", null)
      .where("users.when_locked", "is", null)
      .execute();
    for (const { id, when_expires: ends } of rows) if (ends === null || ends > at) found.add(id);
  }
  return found;
}

/** Ends a session; links to a new token that were mailed stay good. */
export async function endSession({ tx, at }: Work, tokenId: number): Promise<void> {
  await tx
    .updateTable("tokens")
    .set({ when_revoked: at })
    .where((token) => token.and({ id: tokenId, is_session: 1, when_revoked: null }))
    .execute();
}

/** Ends the sessions of a user but the newest `kept`. */
export async function endSessions(work: Work, userId: number, kept = 0): Promise<void> {
  const open = await work.tx
    .selectFrom("tokens")
    .select("id")
    .where((token) => token.and({ user_id: userId, is_session: 1, when_revoked: null }))
    .orderBy("id", "desc")
    .execute();
  for (const { id } of open.slice(kept)) await endSession(work, id);
}

/** Removes tokens that were revoked or ended before a time, ISO 8601. Returns how many. */
export async function dropEndedTokens(store: Store, before: string): Promise<number> {
  const { numDeletedRows } = await store
    .deleteFrom("tokens")
    .where((token) =>
      token.or([token("when_revoked", "<", before), token("when_expires", "<", before)]),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}

export async function issueToken(
  { tx, at }: Work,
  userId: number,
  digest: string,
  { name, role, domains, whenExpires, isSession = false }: TokenTerms = ownersTerms,
): Promise<number> {
  const { id } = await tx
    .insertInto("tokens")
    .values({
      user_id: userId,
      digest,
      name,
      role,
      domains: domains === null ? null : JSON.stringify(domains),
      when_created: at,
      is_session: isSession ? 1 : 0,
      when_expires: whenExpires,
      when_last_used: null,
      when_revoked: null,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  return id;
}

function inForce({ tx, at }: Work, customerId: number) {
  return tx
    .selectFrom("tokens")
    .innerJoin("users", "users.id", "tokens.user_id")
    .where("users.customer_id", "=", customerId)
    .where("tokens.when_revoked", "is", null)
    .where((token) =>
      token.or([token("tokens.when_expires", "is", null), token("tokens.when_expires", ">", at)]),
    );
}

/** Lists the tokens in force of all users of a customer. */
export async function listApiTokens(
  work: Work,
  customerId: number,
  { after, limit }: PageRange,
): Promise<readonly ApiToken[]> {
  const rows = await inForce(work, customerId)
    .select(["tokens.id", "tokens.name", "tokens.role", "tokens.domains", "users.username"])
    .select(["tokens.when_created", "tokens.when_expires", "tokens.when_last_used"])
    .where("tokens.id", ">", after)
    .orderBy("tokens.id")
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    ...row,
    role: roleOf(row.role),
    domains: domainsOf(row.domains)?.slice() ?? null,
  }));
}

export async function findApiToken(
  work: Work,
  customerId: number,
  id: number,
): Promise<ApiToken | undefined> {
  const [found] = await listApiTokens(work, customerId, { after: id - 1, limit: 1 });
  return found?.id === id ? found : undefined;
}

export async function countApiTokens(work: Work, customerId: number): Promise<number> {
  const { count } = await inForce(work, customerId)
    .where("tokens.is_session", "=", 0)
    .select((select) => select.fn.countAll<number | string>().as("count"))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Reads a role. One that only a newer release knows may do the least. */
export function roleOf(text: string): Role {
  return roles.find((role) => role === text) ?? "read";
}

/** Reads the column `domains`. */
export function domainsOf(text: string | null): readonly string[] | null {
  if (text === null) return null;
  const names: unknown = JSON.parse(text);
  return Array.isArray(names) ? names.map(String) : [];
}
