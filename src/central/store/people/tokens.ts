// Tokens of the customer API: whose each is, what it may do, where and for how long. A token is stored as its
// SHA-256 only.

import type { ApiToken, Role } from "../../../wire/customer/token.ts";
import { roles } from "../../../wire/customer/token.ts";
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

/** How many tokens of a customer may be in force at a time. */
export const tokensMax = 1_000;
/** How exact `when_last_used` is: a token that is used all the time is not written at each request. */
const usedStepMs = 60_000;

/** Returns whoever a token stands for, and notes that it was used. Undefined if it is not in force. */
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
  if (Math.abs(Date.parse(at) - usedMs) >= usedStepMs)
    await tx.updateTable("tokens").set({ when_last_used: at }).where("id", "=", row.id).execute();
  return {
    userId: row.user_id,
    customerId: row.customer_id,
    username: row.username,
    mayReadLogs: row.may_read_logs === 1,
    role: roleOf(row.role),
    domains: domainsOf(row.domains),
    tokenId: row.id,
    isSession: row.is_session === 1,
    whenExpires: row.when_expires,
  };
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
