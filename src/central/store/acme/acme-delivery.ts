// The way of a certificate that was issued to the sites that serve its domain. It is kept with its order, so that a site
// that is linked later gets it, and no kill in between leaves it undelivered.

import type { Queries } from "../engine/database.ts";
import type { Work } from "../engine/work.ts";
import { addCertificate } from "../vault/certificates.ts";
import { tellCertificates } from "../vault/site-vault.ts";
import { issuedKeyContext } from "./acme-orders.ts";

/** A site that lacks the certificate of an order. */
export type Undelivered = { readonly orderId: number; readonly siteId: number };

export async function undelivered(db: Queries): Promise<readonly Undelivered[]> {
  return db
    .selectFrom("acme_orders")
    .innerJoin("domain_links", "domain_links.domain_id", "acme_orders.domain_id")
    .leftJoin("certificates", (join) =>
      join
        .onRef("certificates.acme_order_id", "=", "acme_orders.id")
        .onRef("certificates.deployment_site_id", "=", "domain_links.deployment_site_id")
        .onRef("certificates.fingerprint", "=", "acme_orders.fingerprint"),
    )
    .select(["acme_orders.id as orderId", "domain_links.deployment_site_id as siteId"])
    .where("acme_orders.fingerprint", "is not", null)
    .where("certificates.id", "is", null)
    .orderBy("acme_orders.id")
    .execute();
}

/** `too-many`: the site has no room; what was written is to be taken back. `gone`: it is needed no more. */
export type Delivered = "delivered" | "too-many" | "gone";

export async function deliver(work: Work, { orderId, siteId }: Undelivered): Promise<Delivered> {
  const { tx, sealer } = work;
  const order = await tx
    .selectFrom("acme_orders")
    .select(["issued_names", "chain", "issued_key_sealed", "fingerprint", "not_before"])
    .select("not_after")
    .where("id", "=", orderId)
    .executeTakeFirst();
  const site = await tx
    .selectFrom("deployment_sites")
    .select(["id", "name16"])
    .where("id", "=", siteId)
    .where("when_deleted", "is", null)
    .executeTakeFirst();
  if (order === undefined || site === undefined) return "gone";
  const { chain, fingerprint, not_before: notBefore, not_after: notAfter } = order;
  if (chain === null || fingerprint === null || notBefore === null || notAfter === null)
    return "gone";
  const certificate = {
    names: JSON.parse(order.issued_names ?? "[]") as string[], // Written by acme-orders.ts.
    notBefore,
    notAfter,
    fingerprint,
    chain,
    privateKey: sealer.open(order.issued_key_sealed, issuedKeyContext(orderId)),
  };
  const added = await addCertificate(work, site, certificate, orderId);
  return added === "too-many" ? "too-many" : "delivered";
}

/** Returns what was ordered for a domain and is at sites that serve it no more, or was ordered for a domain that is gone. */
async function left(
  db: Queries,
): Promise<readonly { readonly id: number; readonly siteId: number }[]> {
  return db
    .selectFrom("certificates")
    .leftJoin("acme_orders", "acme_orders.id", "certificates.acme_order_id")
    .leftJoin("domain_links", (join) =>
      join
        .onRef("domain_links.domain_id", "=", "acme_orders.domain_id")
        .onRef("domain_links.deployment_site_id", "=", "certificates.deployment_site_id"),
    )
    .select(["certificates.id", "certificates.deployment_site_id as siteId"])
    .where("certificates.acme_order_id", "is not", null)
    .where("domain_links.domain_id", "is", null)
    .execute();
}

export async function hasLeftOrdered(db: Queries): Promise<boolean> {
  return (await left(db)).length > 0;
}

/** Removes what was ordered and has no place any more. Returns how many certificates went. */
export async function takeBackOrdered(work: Work): Promise<number> {
  const rows = await left(work.tx);
  for (const { id } of rows)
    await work.tx.deleteFrom("certificates").where("id", "=", id).execute();
  for (const siteId of new Set(rows.map((row) => row.siteId))) await tellCertificates(work, siteId);
  return rows.length;
}
