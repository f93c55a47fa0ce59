// Keys and certificates of a deployment site as its journal and its snapshot tell them, and the entries that tell of a change.
//
// Rows hold both forms: sealed at rest by the store's key, and sealed for the way. So equal states have equal bodies, and a large state needs no file:
// its blob is made of the rows whenever the site's agent asks for it.

import { type Sha256, sha256Of } from "../../../core/ids.ts";
import {
  certificatesInlineBytesMax,
  type CertificatesChanged,
  type CertificateState,
  type KeysChanged,
} from "../../../wire/vault.ts";
import type { Queries } from "../engine/database.ts";
import { append, type Work } from "../engine/work.ts";

export async function keysBody(db: Queries, deploymentSiteId: number): Promise<KeysChanged> {
  const keys = await db
    .selectFrom("symmetric_keys")
    .select(["name", "version", "sealed"])
    .where("deployment_site_id", "=", deploymentSiteId)
    .orderBy("id")
    .execute();
  return { keys };
}

async function certificateStates(
  db: Queries,
  deploymentSiteId: number,
): Promise<CertificateState[]> {
  const rows = await db
    .selectFrom("certificates")
    .select(["id", "names", "not_before", "not_after", "fingerprint"])
    .select(["chain", "key_name", "sealed_key"])
    .where("deployment_site_id", "=", deploymentSiteId)
    .orderBy("id")
    .execute();
  // Written by certificates.ts alone.
  return rows.map((row) => ({ ...row, names: JSON.parse(row.names) as string[] }));
}

const blobText = (certificates: readonly CertificateState[]): string =>
  JSON.stringify({ certificates });

export async function certificatesBody(
  db: Queries,
  deploymentSiteId: number,
): Promise<CertificatesChanged> {
  const certificates = await certificateStates(db, deploymentSiteId);
  const text = blobText(certificates);
  if (Buffer.byteLength(text) <= certificatesInlineBytesMax) return { certificates };
  return { blob: sha256Of(text), count: certificates.length };
}

/** Returns the blob that the digest names, while it is the state of this very site. */
export async function certificatesBlob(
  db: Queries,
  deploymentSiteId: number,
  sha256: Sha256,
): Promise<Uint8Array | undefined> {
  const current = await db
    .selectFrom("vaults")
    .select("certificates_blob")
    .where((vault) =>
      vault.and({ deployment_site_id: deploymentSiteId, certificates_blob: sha256 }),
    )
    .executeTakeFirst();
  if (current === undefined) return undefined;
  const bytes = Buffer.from(blobText(await certificateStates(db, deploymentSiteId)));
  // Changed between the two reads.
  return sha256Of(bytes) === sha256 ? bytes : undefined;
}

/** Returns where the site's journal told of them last. */
export async function vaultEntries(
  db: Queries,
  deploymentSiteId: number,
): Promise<{ readonly keys: number | null; readonly certificates: number | null }> {
  const told = await db
    .selectFrom("vaults")
    .select(["keys_seq as keys", "certificates_seq as certificates"])
    .where("deployment_site_id", "=", deploymentSiteId)
    .executeTakeFirst();
  return told ?? { keys: null, certificates: null };
}

/** The site has a row in `vaults`. */
export async function tellKeys(work: Work, deploymentSiteId: number): Promise<void> {
  const body = await keysBody(work.tx, deploymentSiteId);
  const [entry] = await append(work, [deploymentSiteId], "key.changed", body);
  await work.tx
    .updateTable("vaults")
    .set({ keys_seq: entry?.seq ?? 0 })
    .where("deployment_site_id", "=", deploymentSiteId)
    .execute();
}

/** The site has a row in `vaults`. */
export async function tellCertificates(work: Work, deploymentSiteId: number): Promise<void> {
  const body = await certificatesBody(work.tx, deploymentSiteId);
  const [entry] = await append(work, [deploymentSiteId], "certificate.changed", body);
  await work.tx
    .updateTable("vaults")
    .set({
      certificates_seq: entry?.seq ?? null,
      certificates_blob: "blob" in body ? body.blob : null,
    })
    .where("deployment_site_id", "=", deploymentSiteId)
    .execute();
}

/** Removes everything of a deleted site. */
export async function emptyVault({ tx }: Work, deploymentSiteId: number): Promise<void> {
  for (const table of ["certificates", "symmetric_keys", "vaults"] as const)
    await tx.deleteFrom(table).where("deployment_site_id", "=", deploymentSiteId).execute();
}
