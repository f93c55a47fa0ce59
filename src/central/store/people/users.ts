// Users of customers, and how each begins.

import type { UserProfile } from "../../../wire/customer/user.ts";
import { addCustomer } from "./customers.ts";
import { dropRecoveries } from "./recovery.ts";
import { endSessions, issueToken, type Actor } from "./tokens.ts";
import type { TableRow } from "../engine/schema.ts";
import type { Work } from "../engine/work.ts";

export type ProfileChange = {
  readonly username: string | undefined;
  readonly first_name: string | undefined;
  readonly last_name: string | undefined;
  readonly email: string | undefined;
  readonly passwordHash: string | undefined;
};

export async function userCredentials({ tx }: Work, username: string) {
  const row = await tx
    .selectFrom("users")
    .select(["id", "customer_id", "username", "password_hash", "may_publish", "may_read_logs"])
    .where((user) => user.and({ username, when_locked: null }))
    .executeTakeFirst();
  return (
    row && {
      actor: {
        userId: row.id,
        customerId: row.customer_id,
        username: row.username,
        mayReadLogs: row.may_read_logs === 1,
        role: "owner",
        domains: null,
        tokenId: null,
        isSession: false,
        isUseTold: true,
        whenExpires: null,
      } satisfies Actor,
      passwordHash: row.password_hash,
      mayPublish: row.may_publish === 1,
    }
  );
}

export async function userProfile(
  { tx }: Work,
  userId: number,
): Promise<{ readonly customerId: number; readonly profile: UserProfile } | undefined> {
  const row = await tx
    .selectFrom("users")
    .select(["id", "customer_id", "username", "first_name", "last_name", "date_joined", "email"])
    .where("id", "=", userId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { customer_id: customerId, ...profile } = row;
  return { customerId, profile };
}

export type NewUser = Pick<
  TableRow<"users">,
  "customer_id" | "username" | "email" | "first_name" | "last_name" | "password_hash"
>;

/** Adds a user. The first user of a customer counts as its creator. */
export async function addUser(
  { tx, at }: Work,
  user: NewUser,
): Promise<number | "username-taken" | "no-customer"> {
  const customer = await tx
    .selectFrom("customers")
    .select(["id", "created_by_user_id"])
    .where("id", "=", user.customer_id)
    .executeTakeFirst();
  if (customer === undefined) return "no-customer";
  const made = await tx
    .insertInto("users")
    .values({ ...user, may_publish: 0, may_read_logs: 1, date_joined: at })
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

/** A customer with its first user and that user's token. Undefined when the username is in use: what was written is to be taken back. */
export async function startTrial(
  work: Work,
  given: { readonly username: string; readonly email: string; readonly tokenDigest: string },
): Promise<{ readonly userId: number; readonly customerId: number } | undefined> {
  const { username, email, tokenDigest } = given;
  const customerId = await addCustomer(work, username);
  const names = { username, email, first_name: "", last_name: "" };
  const userId = await addUser(work, { customer_id: customerId, ...names, password_hash: null });
  if (typeof userId === "string") return undefined;
  await issueToken(work, userId, tokenDigest);
  return { userId, customerId };
}

/**
 * Updates a user; undefined leaves a value. With another address, the links that were sent to the one before
 * are void.
 */
export async function updateUser(
  work: Work,
  userId: number,
  { passwordHash, ...fields }: ProfileChange,
): Promise<"updated" | "username-taken"> {
  if (fields.username !== undefined && (await isTaken(work, fields.username, userId)))
    return "username-taken";
  if (fields.email !== undefined) await leaveAddress(work, userId, fields.email);
  if (passwordHash !== undefined) await endSessions(work, userId);
  const set = Object.fromEntries(
    Object.entries({ ...fields, password_hash: passwordHash }).filter(
      ([, value]) => value !== undefined,
    ),
  );
  if (Object.keys(set).length > 0)
    await work.tx.updateTable("users").set(set).where("id", "=", userId).execute();
  return "updated";
}

/** Leaves an address before another is written: links that lie in the other mailbox are void. */
export async function leaveAddress({ tx }: Work, userId: number, email: string): Promise<void> {
  const { email: before } = await tx
    .selectFrom("users")
    .select("email")
    .where("id", "=", userId)
    .executeTakeFirstOrThrow();
  if (before !== email) await dropRecoveries(tx, userId);
}

async function isTaken({ tx }: Work, username: string, exceptId: number): Promise<boolean> {
  const holder = await tx
    .selectFrom("users")
    .select("id")
    .where("username", "=", username)
    .where("id", "!=", exceptId)
    .executeTakeFirst();
  return holder !== undefined;
}
