// A store with a fleet in it, written before central starts: through the API it would take longer than all that is measured.

import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { createSealer, openKeyFile, type Sealer } from "../../src/base/seal.ts";
import { openStore, type Store } from "../../src/central/store/engine/database.ts";
import { secretContext } from "../../src/central/store/journal/site-secret.ts";
import { parts } from "../../src/central/store/engine/parts.ts";
import { chainStart } from "../../src/core/journal/journal-chain.ts";

export type Site = { readonly name16: string; readonly secret16: string };
export type Fleet = { readonly token: string; readonly sites: readonly Site[] };

export const fleetDomain = "fleet.example.com";
const tag = "fleet";

export type FleetSizes = {
  readonly customers: number;
  readonly domains: number;
  readonly sites: number;
};

/** Makes the store of a state directory, with a fleet in it. */
export async function seedFleet(stateDir: string, sizes: FleetSizes): Promise<Fleet> {
  const sealer = createSealer(await openKeyFile(join(stateDir, "central.key")));
  await using store = await openStore(join(stateDir, "central.db"), () => new Date());
  return await fillWithFleet(store, sealer, sizes);
}

/** The first customer has all sites, and beside its share of the domains one that is linked to each of them. */
export async function fillWithFleet(
  store: Store,
  sealer: Pick<Sealer, "seal">,
  sizes: FleetSizes,
): Promise<Fleet> {
  const at = new Date().toISOString();
  const token = randomBytes(24).toString("base64url");
  const ids = Array.from({ length: sizes.customers }, (_, no) => no + 1);
  const sites = Array.from({ length: sizes.sites }, () => ({
    name16: randomBytes(8).toString("hex"),
    secret16: randomBytes(16).toString("hex"),
  }));
  await store.transaction().execute(async (tx) => {
    for (const part of parts(ids)) {
      await tx
        .insertInto("customers")
        .values(
          part.map((id) => ({ id, name: `c${id}`, created_by_user_id: id, when_created: at })),
        )
        .execute();
      await tx
        .insertInto("users")
        .values(
          part.map((id) => ({
            id,
            customer_id: id,
            username: `user${id}`,
            email: `user${id}@example.com`,
            first_name: "",
            last_name: "",
            password_hash: null,
            may_publish: 0,
            may_read_logs: 1,
            date_joined: at,
          })),
        )
        .execute();
    }
    const digest = createHash("sha256").update(token).digest("hex");
    await tx
      .insertInto("tokens")
      .values({ user_id: 1, digest, when_created: at, when_revoked: null })
      .execute();
    const domains = Array.from({ length: sizes.domains }, (_, no) => ({
      customer_id: (no % sizes.customers) + 1,
      created_by_user_id: (no % sizes.customers) + 1,
      name: no === 0 ? fleetDomain : `d${no}.example.com`,
      link_tags: no === 0 ? JSON.stringify([tag]) : null,
      active_viewset_id: null,
      when_created: at,
    }));
    for (const part of parts(domains)) await tx.insertInto("domains").values(part).execute();
    const { id: domainId } = await tx
      .selectFrom("domains")
      .select("id")
      .where("name", "=", fleetDomain)
      .executeTakeFirstOrThrow();
    for (const part of parts(sites)) {
      const rows = await tx
        .insertInto("deployment_sites")
        .values(
          part.map(({ name16, secret16 }) => ({
            customer_id: 1,
            created_by_user_id: 1,
            name16,
            secret_sealed: sealer.seal(secret16, secretContext(name16)),
            when_created: at,
            when_deleted: null,
            journal_head: 0,
            journal_chain: chainStart,
          })),
        )
        .returning("id")
        .execute();
      await tx
        .insertInto("deployment_site_tags")
        .values(rows.map(({ id }) => ({ deployment_site_id: id, tag, position: 0 })))
        .execute();
      await tx
        .insertInto("domain_links")
        .values(rows.map(({ id }) => ({ domain_id: domainId, deployment_site_id: id, by_id: 0 })))
        .execute();
    }
  });
  return { token, sites };
}
