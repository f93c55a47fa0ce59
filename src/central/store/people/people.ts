// Users, tokens and customers as operators see them: across customers.

import { sql } from "kysely";
import { dropRecoveries } from "./recovery.ts";
import { domainsOf, endSessions } from "./tokens.ts";
import { leaveAddress } from "./users.ts";
import type { PageRange, Work } from "../engine/work.ts";

function persons({ tx, at }: Work) {
  return tx
    .selectFrom("users")
    .select(["id", "customer_id", "username", "email", "first_name", "last_name", "date_joined"])
    .select(["may_publish", "may_read_logs", "password_hash", "when_locked"])
    .select((select) =>
      select
        .selectFrom("tokens")
        .whereRef("tokens.user_id", "=", "users.id")
        .where("when_revoked", "is", null)
        .where((token) =>
          token.or([token("when_expires", "is", null), token("when_expires", ">", at)]),
        )
        .select((inner) => inner.fn.countAll<number | string>().as("count"))
        .as("tokens"),
    );
}

type PersonRow = Awaited<ReturnType<ReturnType<typeof persons>["executeTakeFirstOrThrow"]>>;
export type Person = ReturnType<typeof personOf>;

/** Reads a row; `tokens` counts those in force. */
function personOf({ password_hash: hash, may_publish, may_read_logs, ...row }: PersonRow) {
  return {
    ...row,
    may_publish: may_publish === 1,
    may_read_logs: may_read_logs === 1,
    has_password: hash !== null,
    tokens: Number(row.tokens ?? 0),
  };
}

export async function listPeople(
  work: Work,
  customerId: number | undefined,
  { after, limit }: PageRange,
): Promise<readonly Person[]> {
  let query = persons(work).where("id", ">", after).orderBy("id").limit(limit);
  if (customerId !== undefined) query = query.where("customer_id", "=", customerId);
  return (await query.execute()).map(personOf);
}

export async function findPerson(work: Work, username: string): Promise<Person | undefined> {
  const row = await persons(work).where("username", "=", username).executeTakeFirst();
  return row && personOf(row);
}

/** Null: none from now on. Sessions that began with the one before end. */
export async function setPassword(work: Work, userId: number, hash: string | null): Promise<void> {
  await work.tx
    .updateTable("users")
    .set({ password_hash: hash })
    .where("id", "=", userId)
    .execute();
  await endSessions(work, userId);
}

export async function setPermission(
  { tx }: Work,
  userId: number,
  permission: "publish" | "read-logs",
  isGranted: boolean,
): Promise<void> {
  const value = isGranted ? 1 : 0;
  await tx
    .updateTable("users")
    .set(permission === "publish" ? { may_publish: value } : { may_read_logs: value })
    .where("id", "=", userId)
    .execute();
}

export async function setEmail(work: Work, userId: number, email: string): Promise<void> {
  await leaveAddress(work, userId, email);
  await work.tx.updateTable("users").set({ email }).where("id", "=", userId).execute();
}

export async function lockUser({ tx, at }: Work, userId: number): Promise<void> {
  await dropRecoveries(tx, userId);
  await tx
    .updateTable("users")
    .set({ when_locked: at })
    .where((user) => user.and({ id: userId, when_locked: null }))
    .execute();
}

export async function unlockUser({ tx }: Work, userId: number): Promise<void> {
  await tx.updateTable("users").set({ when_locked: null }).where("id", "=", userId).execute();
}

function tokenLines({ tx }: Work) {
  return tx
    .selectFrom("tokens")
    .innerJoin("users", "users.id", "tokens.user_id")
    .select(["tokens.id", "tokens.user_id", "users.username", "users.customer_id"])
    .select(["tokens.name", "tokens.role", "tokens.domains", "tokens.when_created"])
    .select(["tokens.when_expires", "tokens.when_last_used", "tokens.when_revoked"]);
}

export async function listTokens(
  work: Work,
  of: {
    readonly userId: number | undefined;
    readonly customerId: number | undefined;
    readonly withRevoked: boolean;
  },
  { after, limit }: PageRange,
) {
  const { userId, customerId, withRevoked } = of;
  let query = tokenLines(work).where("tokens.id", ">", after).orderBy("tokens.id").limit(limit);
  if (userId !== undefined) query = query.where("tokens.user_id", "=", userId);
  if (customerId !== undefined) query = query.where("users.customer_id", "=", customerId);
  if (!withRevoked)
    query = query
      .where("tokens.when_revoked", "is", null)
      .where((token) =>
        token.or([
          token("tokens.when_expires", "is", null),
          token("tokens.when_expires", ">", work.at),
        ]),
      );
  return (await query.execute()).map(lineOf);
}

type TokenRow = Awaited<ReturnType<ReturnType<typeof tokenLines>["executeTakeFirstOrThrow"]>>;

function lineOf(row: TokenRow) {
  return { ...row, domains: domainsOf(row.domains) };
}

/** Revokes the tokens in force. The links to new ones that were sent are void as well. */
export async function revokeTokens(
  work: Work,
  of: { readonly tokenId: number } | { readonly userId: number },
) {
  const which = "tokenId" in of ? { "tokens.id": of.tokenId } : { "tokens.user_id": of.userId };
  const inForce = { ...which, when_revoked: null };
  const found = await tokenLines(work)
    .where((token) => token.and(inForce))
    .execute();
  const userId = "userId" in of ? of.userId : found[0]?.user_id;
  const links = userId === undefined ? 0 : await dropRecoveries(work.tx, userId);
  if (found.length === 0) return { revoked: [], links };
  await work.tx
    .updateTable("tokens")
    .set({ when_revoked: work.at })
    .where((token) => token.and(inForce))
    .execute();
  return { revoked: found.map((row) => ({ ...lineOf(row), when_revoked: work.at })), links };
}

export type CustomerLine = Awaited<ReturnType<typeof listCustomers>>[number];

export async function listCustomers(
  { tx }: Work,
  id: number | undefined,
  { after, limit }: PageRange,
) {
  const count = sql<number | string>`count(*)`.as("count");
  let query = tx
    .selectFrom("customers")
    .leftJoin("users as creator", "creator.id", "customers.created_by_user_id")
    .select(["customers.id", "customers.name", "customers.when_created"])
    .select("creator.username as created_by")
    .select((select) => [
      select
        .selectFrom("users")
        .whereRef("users.customer_id", "=", "customers.id")
        .select(count)
        .as("users"),
      select
        .selectFrom("deployment_sites")
        .whereRef("deployment_sites.customer_id", "=", "customers.id")
        .where("when_deleted", "is", null)
        .select(count)
        .as("deployment_sites"),
      select
        .selectFrom("domains")
        .whereRef("domains.customer_id", "=", "customers.id")
        .select(count)
        .as("domains"),
    ])
    .where("customers.id", ">", after)
    .orderBy("customers.id")
    .limit(limit);
  if (id !== undefined) query = query.where("customers.id", "=", id);
  const rows = await query.execute();
  return rows.map((row) => ({
    ...row,
    users: Number(row.users ?? 0),
    deployment_sites: Number(row.deployment_sites ?? 0),
    domains: Number(row.domains ?? 0),
  }));
}
