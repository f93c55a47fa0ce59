// A customer's accounts at directories of ACME. One account is one key, which is durable before the directory hears of it.

import type { AcmeAccount } from "../../../core/acme/wanted-names.ts";
import type { Work } from "../engine/work.ts";

export const accountContext = ({
  customerId,
  directory,
  email,
}: AcmeAccount & { readonly customerId: number }): string =>
  `acme_accounts/${customerId}/${directory}/${email}`;

export type StoredAccount = {
  readonly id: number;
  /** PKCS#8 PEM. */
  readonly privateKey: string;
  /** Null until the directory has made it. */
  readonly url: string | null;
};

/** Returns the account; where there is none, `makeKey` gives it its key. */
export async function acmeAccount(
  { tx, at, sealer }: Work,
  owner: AcmeAccount & { readonly customerId: number },
  makeKey: () => string,
): Promise<StoredAccount> {
  const { customerId, directory, email } = owner;
  const context = accountContext(owner);
  const found = await tx
    .selectFrom("acme_accounts")
    .select(["id", "key_sealed", "url"])
    .where((one) => one.and({ customer_id: customerId, directory, email }))
    .executeTakeFirst();
  if (found !== undefined) {
    const { id, key_sealed: sealed, url } = found;
    return { id, url, privateKey: sealer.open(sealed, context) };
  }
  const privateKey = makeKey();
  const { id } = await tx
    .insertInto("acme_accounts")
    .values({
      customer_id: customerId,
      directory,
      email,
      key_sealed: sealer.seal(privateKey, context),
      url: null,
      when_created: at,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  return { id, privateKey, url: null };
}

/** Notes under which URL the directory knows the account; null: it does not know it, or no more. */
export async function setAccountUrl({ tx }: Work, id: number, url: string | null): Promise<void> {
  await tx.updateTable("acme_accounts").set({ url }).where("id", "=", id).execute();
}
