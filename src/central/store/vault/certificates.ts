// Certificates of deployment sites. One per set of names: the last that was given is the one that is served.

import { sql } from "kysely";
import { sealPrivateKey } from "../../../base/vault-seal.ts";
import type { Sha256 } from "../../../core/ids.ts";
import type { Certificate } from "../../../wire/customer/certificate.ts";
import { certificatesBytesMax, certificatesMax } from "../../../wire/vault.ts";
import { readProof, shownProof } from "../journal/proof.ts";
import { tellCertificates } from "./site-vault.ts";
import { newestKey, privateKeyContext } from "./symmetric-keys.ts";
import type { PageRange, Work } from "../engine/work.ts";
import { deletedRows } from "../engine/counts.ts";
import type { SiteRow } from "../journal/sites.ts";

/** Checked: all of it belongs together. */
export type CheckedCertificate = {
  /** Sorted, each once. */
  readonly names: readonly string[];
  readonly notBefore: string;
  readonly notAfter: string;
  readonly fingerprint: Sha256;
  readonly chain: string;
  /** PKCS#8 PEM. */
  readonly privateKey: string;
};

export type CertificateRemoved =
  | { readonly kind: "removed" | "missing" }
  /** A domain orders it, and it would come back. */
  | { readonly kind: "ordered"; readonly domain: string };

export async function removeCertificate(
  work: Work,
  siteId: number,
  id: number,
): Promise<CertificateRemoved> {
  const orderer = await work.tx
    .selectFrom("certificates")
    .innerJoin("acme_orders", "acme_orders.id", "certificates.acme_order_id")
    .innerJoin("domains", "domains.id", "acme_orders.domain_id")
    .innerJoin("domain_links", (join) =>
      join
        .onRef("domain_links.domain_id", "=", "domains.id")
        .onRef("domain_links.deployment_site_id", "=", "certificates.deployment_site_id"),
    )
    .select("domains.name as domain")
    .where("certificates.deployment_site_id", "=", siteId)
    .where("certificates.id", "=", id)
    .executeTakeFirst();
  if (orderer !== undefined) return { kind: "ordered", ...orderer };
  const gone = work.tx
    .deleteFrom("certificates")
    .where((one) => one.and({ deployment_site_id: siteId, id }));
  if ((await deletedRows(gone)) === 0) return { kind: "missing" };
  await tellCertificates(work, siteId);
  return { kind: "removed" };
}

export async function listCertificates(
  { tx, at }: Work,
  siteId: number,
  range: PageRange,
): Promise<readonly Certificate[]> {
  const rows = await tx
    .selectFrom("certificates")
    .select(["id", "names", "not_before", "not_after", "fingerprint", "when_created"])
    .select("acme_order_id as orderId")
    .where("deployment_site_id", "=", siteId)
    .where("id", ">", range.after)
    .orderBy("id")
    .limit(range.limit)
    .execute();
  if (rows.length === 0) return [];
  const told = await tx
    .selectFrom("vaults")
    .select("certificates_seq")
    .where("deployment_site_id", "=", siteId)
    .executeTakeFirstOrThrow();
  const state = shownProof(await readProof(tx, siteId, told.certificates_seq ?? 0, Date.parse(at)));
  // Written below.
  return rows.map(({ orderId, ...row }) => ({
    ...row,
    names: JSON.parse(row.names) as string[],
    ...(orderId !== null && { order_id: orderId }),
    ...state,
  }));
}

/** The same one again changes nothing. One that was ordered replaces the one that its order brought before. */
export async function addCertificate(
  work: Work,
  site: Pick<SiteRow, "id" | "name16">,
  given: CheckedCertificate,
  acmeOrderId: number | null = null,
): Promise<number | "too-many"> {
  const { tx, at, sealer } = work;
  const names = JSON.stringify(given.names);
  const before = await tx
    .selectFrom("certificates")
    .select(["id", "fingerprint", "chain", "acme_order_id as orderId"])
    .where("deployment_site_id", "=", site.id)
    .where((where) =>
      where.or([
        where("names", "=", names),
        where("fingerprint", "=", given.fingerprint),
        ...(acmeOrderId === null ? [] : [where("acme_order_id", "=", acmeOrderId)]),
      ]),
    )
    .execute();
  const same = before.find(
    ({ fingerprint, chain, orderId }) =>
      fingerprint === given.fingerprint && chain === given.chain && orderId === acmeOrderId,
  );
  if (same !== undefined) return same.id;
  const { fingerprint } = given;
  const place = { name16: site.name16, fingerprint };
  const newest = await newestKey(work, site.id);
  for (const { id } of before) await tx.deleteFrom("certificates").where("id", "=", id).execute();
  const { id } = await tx
    .insertInto("certificates")
    .values({
      deployment_site_id: site.id,
      names,
      not_before: given.notBefore,
      not_after: given.notAfter,
      fingerprint,
      chain: given.chain,
      private_key_sealed: sealer.seal(given.privateKey, privateKeyContext(place)),
      key_name: newest.name,
      sealed_key: sealPrivateKey(given.privateKey, newest.key, place),
      when_created: at,
      acme_order_id: acmeOrderId,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  if (await isTooMuch(work, site.id)) return "too-many";
  await tellCertificates(work, site.id);
  return id;
}

/**
 * What a row takes as JSON beside its long texts: 450 bytes, and the up to 1,008 line ends of PEM as two
 * characters each.
 */
const rowBytes = 2_048;

async function isTooMuch({ tx }: Work, siteId: number): Promise<boolean> {
  const { count, bytes } = await tx
    .selectFrom("certificates")
    .select((select) => [
      select.fn.countAll<number>().as("count"),
      sql<number>`sum(octet_length(chain) + octet_length(sealed_key) + octet_length(names))`.as(
        "bytes",
      ),
    ])
    .where("deployment_site_id", "=", siteId)
    .executeTakeFirstOrThrow();
  return count > certificatesMax || bytes + count * rowBytes > certificatesBytesMax;
}
