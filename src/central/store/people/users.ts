// Users and their tokens. A token is stored as its SHA-256 only.

import type { UserProfile } from "../../../wire/customer/user.ts";
import { dropRecoveries } from "./recovery.ts";
import type { Work } from "../engine/work.ts";

/** Who asks. */
export type Actor = {
  readonly userId: number;
  readonly customerId: number;
  readonly username: string;
  readonly mayReadLogs: boolean;
};

export type ProfileChange = {
  readonly username: string | undefined;
  readonly first_name: string | undefined;
  readonly last_name: string | undefined;
  readonly email: string | undefined;
  readonly passwordHash: string | undefined;
};

type NewTrial = {
  readonly username: string;
  readonly email: string;
  readonly tokenDigest: string;
};

export function users(work: Work) {
  return {
    byToken: (tokenDigest: string) => userByToken(work, tokenDigest),
    credentials: (username: string) => credentials(work, username),
    startTrial: (trial: NewTrial) => startTrial(work, trial),
    update: (userId: number, change: ProfileChange) => updateUser(work, userId, change),

    async profile(
      userId: number,
    ): Promise<{ customerId: number; profile: UserProfile } | undefined> {
      const row = await work.tx
        .selectFrom("users")
        .select([
          "id",
          "customer_id",
          "username",
          "first_name",
          "last_name",
          "date_joined",
          "email",
        ])
        .where("id", "=", userId)
        .executeTakeFirst();
      if (row === undefined) return undefined;
      const { customer_id: customerId, ...profile } = row;
      return { customerId, profile };
    },
  };
}

async function userByToken({ tx }: Work, tokenDigest: string): Promise<Actor | undefined> {
  const row = await tx
    .selectFrom("tokens")
    .innerJoin("users", "users.id", "tokens.user_id")
    .select(["users.id", "users.customer_id", "users.username", "users.may_read_logs"])
    .where("tokens.digest", "=", tokenDigest)
    .where("tokens.when_revoked", "is", null)
    .where("users.when_locked", "is", null)
    .executeTakeFirst();
  return row === undefined
    ? undefined
    : {
        userId: row.id,
        customerId: row.customer_id,
        username: row.username,
        mayReadLogs: row.may_read_logs === 1,
      };
}

async function credentials({ tx }: Work, username: string) {
  const row = await tx
    .selectFrom("users")
    .select(["id", "customer_id", "username", "password_hash", "may_publish", "may_read_logs"])
    .where("username", "=", username)
    .where("when_locked", "is", null)
    .executeTakeFirst();
  return row === undefined
    ? undefined
    : {
        actor: {
          userId: row.id,
          customerId: row.customer_id,
          username: row.username,
          mayReadLogs: row.may_read_logs === 1,
        },
        passwordHash: row.password_hash,
        mayPublish: row.may_publish === 1,
      };
}

/** A customer with its first user and that user's token. Undefined when the username is in use. */
async function startTrial(
  work: Work,
  { username, email, tokenDigest }: NewTrial,
): Promise<{ userId: number; customerId: number } | undefined> {
  const { tx, at } = work;
  if (await isTaken(work, username, 0)) return undefined;
  const { id: customerId } = await tx
    .insertInto("customers")
    .values({ name: username, created_by_user_id: null, when_created: at })
    .returning("id")
    .executeTakeFirstOrThrow();
  const { id: userId } = await tx
    .insertInto("users")
    .values({
      customer_id: customerId,
      username,
      email,
      first_name: "",
      last_name: "",
      password_hash: null,
      may_publish: 0,
      may_read_logs: 1,
      date_joined: at,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  await tx
    .updateTable("customers")
    .set({ created_by_user_id: userId })
    .where("id", "=", customerId)
    .execute();
  await tx
    .insertInto("tokens")
    .values({ user_id: userId, digest: tokenDigest, when_created: at, when_revoked: null })
    .execute();
  return { userId, customerId };
}

/**
 * Updates a user; undefined leaves a value. With another address, the links that were sent to the one before
 * are void.
 */
async function updateUser(
  work: Work,
  userId: number,
  { passwordHash, ...fields }: ProfileChange,
): Promise<"updated" | "username-taken"> {
  if (fields.username !== undefined && (await isTaken(work, fields.username, userId)))
    return "username-taken";
  if (fields.email !== undefined) await leaveAddress(work, userId, fields.email);
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
