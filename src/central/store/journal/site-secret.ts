// The secret16 of a deployment site: sealed at rest by the store's key, opened where a key of the site is sealed with it.

import type { SiteCredentials } from "../../../base/vault-seal.ts";
import type { Work } from "../engine/work.ts";

/** Returns the text that a sealed secret is bound to, so that it opens for this site only. */
export function secretContext(name16: string): string {
  return `deployment_sites/${name16}/secret16`;
}

export type SiteWithSecret = SiteCredentials & { readonly id: number };

export async function siteWithSecret({ tx, sealer }: Work, id: number): Promise<SiteWithSecret> {
  const { name16, secret_sealed: sealed } = await tx
    .selectFrom("deployment_sites")
    .select(["name16", "secret_sealed"])
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  return { id, name16, secret16: sealer.open(sealed, secretContext(name16)) };
}
