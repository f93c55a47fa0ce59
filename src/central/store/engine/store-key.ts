// The key that belongs to a store. A store whose secrets do not open with it would lock out every agent: central does not start with it.

import { existsSync } from "node:fs";
import { createSealer, openKeysOfFile, type Sealer } from "../../../base/seal.ts";
import { AccelError } from "../../../core/faults.ts";
import { secretContext } from "../journal/site-secret.ts";
import type { Store } from "./database.ts";

/** Makes the key of a store without secrets where there is none. Throws FILE_UNUSABLE, and STORE_KEY_WRONG for a missing or another key. */
export async function openStoreKey(store: Store, path: string): Promise<Sealer> {
  const sealed = await oneSecret(store);
  if (sealed !== undefined && !existsSync(path))
    throw new AccelError(
      "STORE_KEY_WRONG",
      `the key file ${path} is missing, and the store holds secrets`,
    );
  const sealer = createSealer(...(await openKeysOfFile(path)));
  if (sealed === undefined) return sealer;
  try {
    sealer.open(sealed.secret_sealed, secretContext(sealed.name16));
  } catch (error) {
    const text = `the secrets in the store do not open with the key in ${path}`;
    throw new AccelError("STORE_KEY_WRONG", text, { cause: error });
  }
  return sealer;
}

/** Asks whether the store opens with the key in the file; makes none. Throws what `openStoreKey` throws. */
export async function tryStoreKey(store: Store, path: string): Promise<void> {
  if (existsSync(path) || (await oneSecret(store)) !== undefined) await openStoreKey(store, path);
}

async function oneSecret(store: Store) {
  return store
    .selectFrom("deployment_sites")
    .select(["name16", "secret_sealed"])
    .limit(1)
    .executeTakeFirst();
}
