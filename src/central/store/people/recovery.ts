// Recovery of a token: the request is written down as it comes and answered; whether there is such a user is looked up later, so that the answer
// and its time say nothing.

import { isMailAddress, mailAddressKey } from "../../../core/outgoing.ts";
import { issueToken } from "./tokens.ts";
import type { Tx } from "../engine/database.ts";
import type { Work } from "../engine/work.ts";
import { sha256Of } from "../../../core/ids.ts";
import { deletedRows, rowCount } from "../engine/counts.ts";

export const recoveryLifetimeMs = 3_600_000;
/** Links that are good, which they are for an hour: of a user, and of all. Others at the user's mailbox do not use up the user's. */
const linksPerUser = 5;
const linksInAll = 5_000;

/** Notes the request, unless `waitingMax` wait already. */
export async function requestRecovery(
  { tx, at }: Work,
  { username, email }: { readonly username: string; readonly email: string },
  waitingMax: number,
): Promise<"requested" | "too-many"> {
  if ((await rowCount(tx.selectFrom("recovery_requests"))) >= waitingMax) return "too-many";
  await tx.insertInto("recovery_requests").values({ username, email, when_created: at }).execute();
  return "requested";
}

export type Recoverable = {
  readonly userId: number;
  readonly customerId: number;
  readonly username: string;
  readonly email: string;
};

/** The oldest request, taken away. `user` undefined: there is none by this name and address. */
export async function takeRecoveryRequest({
  tx,
}: Work): Promise<{ readonly user: Recoverable | undefined } | undefined> {
  const request = await tx
    .selectFrom("recovery_requests")
    .selectAll()
    .orderBy("id")
    .executeTakeFirst();
  if (request === undefined) return undefined;
  await tx.deleteFrom("recovery_requests").where("id", "=", request.id).execute();
  const user = await tx
    .selectFrom("users")
    .select(["id", "customer_id", "username", "email"])
    .where((one) => one.and({ username: request.username, when_locked: null }))
    .executeTakeFirst();
  const isSame =
    user !== undefined &&
    isMailAddress(user.email) &&
    mailAddressKey(user.email) === mailAddressKey(request.email);
  if (!isSame) return { user: undefined };
  const { id: userId, customer_id: customerId, username, email } = user;
  return { user: { userId, customerId, username, email } };
}

/** Whether the user, or all together, have as many links as there may be. */
export async function hasLinksEnough({ tx, at }: Work, userId: number): Promise<boolean> {
  const good = tx.selectFrom("recoveries").where("expires_at", ">", at);
  const own = await rowCount(good.where("user_id", "=", userId));
  return own >= linksPerUser || (await rowCount(good)) >= linksInAll;
}

const tokenText = (randomHex: Work["randomHex"]): string =>
  Buffer.from(randomHex(32), "hex").toString("base64url");

/** The token of a new link; those before stay good until one is used. */
export async function startRecovery(work: Work, userId: number): Promise<string> {
  const { tx, at, randomHex } = work;
  const token = tokenText(randomHex);
  await tx
    .insertInto("recoveries")
    .values({
      digest: sha256Of(token),
      user_id: userId,
      expires_at: new Date(Date.parse(at) + recoveryLifetimeMs).toISOString(),
    })
    .execute();
  return token;
}

/** Whom a link is for; undefined for one that is used, over or made up. */
export async function recoveryUser(
  { tx, at }: Work,
  token: string,
): Promise<
  { readonly userId: number; readonly customerId: number; readonly username: string } | undefined
> {
  return tx
    .selectFrom("recoveries")
    .innerJoin("users", "users.id", "recoveries.user_id")
    .select(["users.id as userId", "users.customer_id as customerId", "users.username"])
    .where("recoveries.digest", "=", sha256Of(token))
    .where("users.when_locked", "is", null)
    .where("recoveries.expires_at", ">", at)
    .executeTakeFirst();
}

/** The user's links are void. How many there were. */
export async function dropRecoveries(tx: Tx, userId: number): Promise<number> {
  return deletedRows(tx.deleteFrom("recoveries").where("user_id", "=", userId));
}

/** Voids the user's tokens, links and password, and makes a new token. Whoever took the account may have set the password. */
export async function finishRecovery(work: Work, userId: number): Promise<string> {
  const { tx, at, randomHex } = work;
  await dropRecoveries(tx, userId);
  await tx
    .updateTable("tokens")
    .set({ when_revoked: at })
    .where((token) => token.and({ user_id: userId, when_revoked: null }))
    .execute();
  await tx.updateTable("users").set({ password_hash: null }).where("id", "=", userId).execute();
  const token = tokenText(randomHex);
  await issueToken(work, userId, sha256Of(token));
  return token;
}
