// Users, tokens and customers as operators see them: across customers.

import { sql } from "kysely";
import type { NewPerson, Permission, Person } from "../../../core/people.ts";
import { dropRecoveries } from "./recovery.ts";
import { leaveAddress } from "./users.ts";
import type { PageRange, Work } from "../engine/work.ts";

type TokensOf = {
  readonly userId: number | undefined;
  readonly customerId: number | undefined;
  readonly withRevoked: boolean;
};
type Revoked = { readonly tokenId: number } | { readonly userId: number };

export function people(work: Work) {
  return {
    list: async (of: { readonly customerId: number | undefined }, range: PageRange) =>
      list(work, of, range),
    find: async (username: string) => find(work, username),
    add: async (person: NewPerson) => add(work, person),
    tokens: async (of: TokensOf, range: PageRange) => tokens(work, of, range),
    issueToken: async (userId: number, tokenDigest: string) =>
      issueToken(work, userId, tokenDigest),
    revokeTokens: async (of: Revoked) => revokeTokens(work, of),
    customers: async (of: { readonly id: number | undefined }, range: PageRange) =>
      customers(work, of, range),

    async setPassword(userId: number, passwordHash: string): Promise<void> {
      await work.tx
        .updateTable("users")
        .set({ password_hash: passwordHash })
        .where("id", "=", userId)
        .execute();
    },

    async setPermission(userId: number, permission: Permission, isGranted: boolean): Promise<void> {
      const value = isGranted ? 1 : 0;
      await work.tx
        .updateTable("users")
        .set(permission === "publish" ? { may_publish: value } : { may_read_logs: value })
        .where("id", "=", userId)
        .execute();
    },

    async setEmail(userId: number, email: string): Promise<void> {
      await leaveAddress(work, userId, email);
      await work.tx.updateTable("users").set({ email }).where("id", "=", userId).execute();
    },

    async lock(userId: number): Promise<void> {
      await dropRecoveries(work.tx, userId);
      await work.tx
        .updateTable("users")
        .set({ when_locked: work.at })
        .where("id", "=", userId)
        .where("when_locked", "is", null)
        .execute();
    },

    async unlock(userId: number): Promise<void> {
      await work.tx
        .updateTable("users")
        .set({ when_locked: null })
        .where("id", "=", userId)
        .execute();
    },

    /** Nobody may delete it until it has its first user. */
    async addCustomer(name: string): Promise<number> {
      const { id } = await work.tx
        .insertInto("customers")
        .values({ name, created_by_user_id: null, when_created: work.at })
        .returning("id")
        .executeTakeFirstOrThrow();
      return id;
    },
  };
}

function persons({ tx }: Work) {
  return tx
    .selectFrom("users")
    .select([
      "id",
      "customer_id",
      "username",
      "email",
      "first_name",
      "last_name",
      "date_joined",
      "may_publish",
      "may_read_logs",
      "password_hash",
      "when_locked",
    ])
    .select((select) =>
      select
        .selectFrom("tokens")
        .whereRef("tokens.user_id", "=", "users.id")
        .where("when_revoked", "is", null)
        .select((inner) => inner.fn.countAll<number | string>().as("count"))
        .as("tokens"),
    );
}

type PersonRow = Awaited<ReturnType<ReturnType<typeof persons>["executeTakeFirstOrThrow"]>>;

function read({ password_hash: hash, may_publish, may_read_logs, ...row }: PersonRow): Person {
  return {
    ...row,
    may_publish: may_publish === 1,
    may_read_logs: may_read_logs === 1,
    has_password: hash !== null,
    tokens: Number(row.tokens ?? 0),
  };
}

async function list(
  work: Work,
  { customerId }: { readonly customerId: number | undefined },
  { after, limit }: PageRange,
): Promise<readonly Person[]> {
  let query = persons(work).where("id", ">", after).orderBy("id").limit(limit);
  if (customerId !== undefined) query = query.where("customer_id", "=", customerId);
  return (await query.execute()).map(read);
}

async function find(work: Work, username: string): Promise<Person | undefined> {
  const row = await persons(work).where("username", "=", username).executeTakeFirst();
  return row === undefined ? undefined : read(row);
}

async function add(
  { tx, at }: Work,
  person: NewPerson,
): Promise<number | "username-taken" | "no-customer"> {
  const customer = await tx
    .selectFrom("customers")
    .select(["id", "created_by_user_id"])
    .where("id", "=", person.customerId)
    .executeTakeFirst();
  if (customer === undefined) return "no-customer";
  const made = await tx
    .insertInto("users")
    .values({
      customer_id: person.customerId,
      username: person.username,
      email: person.email,
      first_name: person.firstName,
      last_name: person.lastName,
      password_hash: person.passwordHash,
      may_publish: 0,
      may_read_logs: 1,
      date_joined: at,
    })
    .onConflict((conflict) => conflict.column("username").doNothing())
    .returning("id")
    .executeTakeFirst();
  if (made === undefined) return "username-taken";
  if (customer.created_by_user_id === null)
    await tx
      .updateTable("customers")
      .set({ created_by_user_id: made.id })
      .where("id", "=", customer.id)
      .execute();
  return made.id;
}

function tokenLines({ tx }: Work) {
  return tx
    .selectFrom("tokens")
    .innerJoin("users", "users.id", "tokens.user_id")
    .select([
      "tokens.id",
      "tokens.user_id",
      "users.username",
      "users.customer_id",
      "tokens.when_created",
      "tokens.when_revoked",
    ]);
}

async function tokens(
  work: Work,
  { userId, customerId, withRevoked }: TokensOf,
  { after, limit }: PageRange,
) {
  let query = tokenLines(work).where("tokens.id", ">", after).orderBy("tokens.id").limit(limit);
  if (userId !== undefined) query = query.where("tokens.user_id", "=", userId);
  if (customerId !== undefined) query = query.where("users.customer_id", "=", customerId);
  if (!withRevoked) query = query.where("tokens.when_revoked", "is", null);
  return query.execute();
}

async function issueToken({ tx, at }: Work, userId: number, digest: string): Promise<number> {
  const { id } = await tx
    .insertInto("tokens")
    .values({ user_id: userId, digest, when_created: at, when_revoked: null })
    .returning("id")
    .executeTakeFirstOrThrow();
  return id;
}

/** Revokes the tokens in force. The links to new ones that were sent are void as well. */
async function revokeTokens(work: Work, of: Revoked) {
  const lines = tokenLines(work).where("tokens.when_revoked", "is", null);
  const found = await (
    "tokenId" in of
      ? lines.where("tokens.id", "=", of.tokenId)
      : lines.where("tokens.user_id", "=", of.userId)
  ).execute();
  const userId = "userId" in of ? of.userId : found[0]?.user_id;
  const links = userId === undefined ? 0 : await dropRecoveries(work.tx, userId);
  if (found.length === 0) return { revoked: [], links };
  const revoked = work.tx
    .updateTable("tokens")
    .set({ when_revoked: work.at })
    .where("when_revoked", "is", null);
  await (
    "tokenId" in of
      ? revoked.where("id", "=", of.tokenId)
      : revoked.where("user_id", "=", of.userId)
  ).execute();
  return { revoked: found.map((line) => ({ ...line, when_revoked: work.at })), links };
}

export type CustomerLine = Awaited<ReturnType<typeof customers>>[number];

async function customers(
  { tx }: Work,
  { id }: { readonly id: number | undefined },
  { after, limit }: PageRange,
) {
  const count = sql<number | string>`count(*)`.as("count");
  let query = tx
    .selectFrom("customers")
    .leftJoin("users as creator", "creator.id", "customers.created_by_user_id")
    .select([
      "customers.id",
      "customers.name",
      "customers.when_created",
      "creator.username as created_by",
    ])
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
