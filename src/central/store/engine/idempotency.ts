// First answers of POSTs by `Idempotency-Key`, stored in the transaction that they answer for, sealed since they may hold a token.

import type { Work } from "./work.ts";

export type IdempotentCall = {
  /** Who may repeat it: a user; where there is none, an address with this very request. */
  readonly scope: string;
  readonly key: string;
  /** The digest of method, path and body. */
  readonly requestDigest: string;
};

export type StoredAnswer =
  | { readonly outcome: "answered"; readonly status: number; readonly body: unknown }
  /** The key was used for another request. */
  | { readonly outcome: "other-request" };

/** Keys are remembered this long. */
export const idempotencyLifetimeMs = 86_400_000;

export const answerContext = ({ scope, key }: Pick<IdempotentCall, "scope" | "key">): string =>
  `idempotency/${scope}/${key}`;

export async function findAnswer(
  { tx, at, sealer }: Work,
  call: IdempotentCall,
): Promise<StoredAnswer | undefined> {
  const row = await tx
    .selectFrom("idempotency")
    .select(["request_digest", "status", "answer_sealed", "when_created"])
    .where("scope", "=", call.scope)
    .where("key", "=", call.key)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  if (Date.parse(at) - Date.parse(row.when_created) > idempotencyLifetimeMs) return undefined;
  if (row.request_digest !== call.requestDigest) return { outcome: "other-request" };
  const body: unknown = JSON.parse(sealer.open(row.answer_sealed, answerContext(call)));
  return { outcome: "answered", status: row.status, body };
}

/** Stores an answer in place of one that is past its lifetime. */
export async function storeAnswer(
  { tx, at, sealer }: Work,
  call: IdempotentCall,
  status: number,
  body: unknown,
): Promise<void> {
  const answer = {
    request_digest: call.requestDigest,
    status,
    answer_sealed: sealer.seal(JSON.stringify(body ?? null), answerContext(call)),
    when_created: at,
  };
  await tx
    .insertInto("idempotency")
    .values({ scope: call.scope, key: call.key, ...answer })
    .onConflict((conflict) => conflict.columns(["scope", "key"]).doUpdateSet(answer))
    .execute();
}
