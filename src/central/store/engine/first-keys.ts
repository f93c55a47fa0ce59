// The first symmetric key of sites that are older than keys: made once, at the first start of a release that has them.

import { AccelError } from "../../../core/faults.ts";
import { siteWithSecret } from "../journal/site-secret.ts";
import { addKey } from "../vault/symmetric-keys.ts";
import type { Work } from "./work.ts";

/** The most sites of one transaction. */
const sitesAtOnce = 50;

export type FirstKeysDeps = {
  readonly transact: <T>(action: (work: Work) => Promise<T>) => Promise<T>;
  /** A site whose secret does not open gets none; its agent cannot be known either. */
  readonly onFailure: (deploymentSiteId: number, error: unknown) => void;
  /** Ends it early; the rest is left for the next start. */
  readonly stop?: AbortSignal;
};

/** Answers how many were made. */
export async function giveFirstKeys({ transact, onFailure, stop }: FirstKeysDeps): Promise<number> {
  let [made, after] = [0, 0];
  for (;;) {
    const { ids, given } = await transact(async (work) => {
      const rows = await keyless(work, after);
      let given = 0;
      for (const { id } of rows) if (await giveKey(work, id, onFailure)) given += 1;
      return { ids: rows.map(({ id }) => id), given };
    });
    made += given;
    after = ids.at(-1) ?? after;
    if (ids.length < sitesAtOnce || stop?.aborted === true) return made;
  }
}

async function keyless({ tx }: Work, after: number): Promise<readonly { readonly id: number }[]> {
  return tx
    .selectFrom("deployment_sites")
    .leftJoin("vaults", "vaults.deployment_site_id", "deployment_sites.id")
    .select("deployment_sites.id")
    .where("vaults.deployment_site_id", "is", null)
    .where("when_deleted", "is", null)
    .where("deployment_sites.id", ">", after)
    .orderBy("deployment_sites.id")
    .limit(sitesAtOnce)
    .execute();
}

async function giveKey(
  work: Work,
  id: number,
  onFailure: FirstKeysDeps["onFailure"],
): Promise<boolean> {
  try {
    await addKey(work, await siteWithSecret(work, id));
    return true;
  } catch (error) {
    if (!(error instanceof AccelError && error.code === "SEAL_BROKEN")) throw error;
    onFailure(id, error);
    return false;
  }
}
