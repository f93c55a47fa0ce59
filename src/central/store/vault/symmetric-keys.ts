// Symmetric keys of deployment sites: made here, sealed at rest by the store's key and for the way with the site's secret16.
//
// A site has at least one. The one with the highest id is its newest: what seals the private keys of its certificates.

import { sealPrivateKey, sealSymmetricKey, symmetricKeyBytes } from "../../../base/vault-seal.ts";
import type { SymmetricKey } from "../../../wire/customer/symmetric-key.ts";
import { symmetricKeysMax } from "../../../wire/vault.ts";
import { sql } from "kysely";
import { readProof, shownProof } from "../journal/proof.ts";
import { siteWithSecret, type SiteWithSecret } from "../journal/site-secret.ts";
import { tellCertificates, tellKeys } from "./site-vault.ts";
import { pacedParts } from "../engine/parts.ts";
import type { PageRange, Work } from "../engine/work.ts";
import { rowCount } from "../engine/counts.ts";

export const keyContext = (name: string): string => `symmetric_keys/${name}`;
/** A private key is bound to its certificate: it opens for no other. */
export const privateKeyContext = (place: {
  readonly name16: string;
  readonly fingerprint: string;
}): string => `certificates/${place.name16}/${place.fingerprint}`;

export async function findKey(
  work: Work,
  customerId: number,
  id: number,
): Promise<SymmetricKey | undefined> {
  const [key] = await listKeys(work, customerId, { after: id - 1, limit: 1 });
  return key?.id === id ? key : undefined;
}

export async function createKey(work: Work, siteId: number): Promise<number | "too-many"> {
  if ((await countKeys(work, siteId)) >= symmetricKeysMax) return "too-many";
  return addKey(work, await siteWithSecret(work, siteId));
}

/** Moves a key to another site of the customer; its name stays. */
export async function moveKey(
  work: Work,
  { id, deployment_site_id: fromSiteId }: SymmetricKey,
  toSiteId: number,
): Promise<"moved" | "only-key" | "too-many"> {
  if (fromSiteId === toSiteId) return "moved";
  if ((await countKeys(work, fromSiteId)) <= 1) return "only-key";
  if ((await countKeys(work, toSiteId)) >= symmetricKeysMax) return "too-many";
  const to = await siteWithSecret(work, toSiteId);
  await work.tx
    .updateTable("symmetric_keys")
    .set({ deployment_site_id: toSiteId })
    .where("id", "=", id)
    .execute();
  await sealKeys(work, to, [id]);
  for (const site of [await siteWithSecret(work, fromSiteId), to]) await keysChanged(work, site);
  return "moved";
}

export async function listKeys(
  { tx, at }: Work,
  customerId: number,
  range: PageRange,
): Promise<readonly SymmetricKey[]> {
  const rows = await tx
    .selectFrom("symmetric_keys")
    .innerJoin("deployment_sites", "deployment_sites.id", "symmetric_keys.deployment_site_id")
    .innerJoin("vaults", "vaults.deployment_site_id", "symmetric_keys.deployment_site_id")
    .select(["symmetric_keys.id", "symmetric_keys.name", "symmetric_keys.deployment_site_id"])
    .select("vaults.keys_seq")
    .where("deployment_sites.customer_id", "=", customerId)
    .where("symmetric_keys.id", ">", range.after)
    .orderBy("symmetric_keys.id")
    .limit(range.limit)
    .execute();
  const proofs = new Map<number, Awaited<ReturnType<typeof readProof>>>();
  const keys: SymmetricKey[] = [];
  for (const { keys_seq: seq, ...key } of rows) {
    const siteId = key.deployment_site_id;
    const proof = proofs.get(siteId) ?? (await readProof(tx, siteId, seq, Date.parse(at)));
    proofs.set(siteId, proof);
    keys.push({ ...key, ...shownProof(proof) });
  }
  return keys;
}

async function countKeys({ tx }: Work, deploymentSiteId: number): Promise<number> {
  return rowCount(
    tx.selectFrom("symmetric_keys").where("deployment_site_id", "=", deploymentSiteId),
  );
}

/** Certificates are sealed with it from now on. */
export async function addKey(work: Work, site: SiteWithSecret): Promise<number> {
  const { tx, at, sealer, randomHex } = work;
  const { keys_made: n } = await tx
    .insertInto("vaults")
    .values({
      deployment_site_id: site.id,
      keys_made: 1,
      keys_seq: 0,
      certificates_seq: null,
      certificates_blob: null,
    })
    .onConflict((conflict) =>
      conflict.column("deployment_site_id").doUpdateSet({ keys_made: sql`vaults.keys_made + 1` }),
    )
    .returning("keys_made")
    .executeTakeFirstOrThrow();
  const name = `key-${site.name16}-${n}`;
  const key = randomHex(symmetricKeyBytes);
  const { id } = await tx
    .insertInto("symmetric_keys")
    .values({
      deployment_site_id: site.id,
      name,
      key_sealed: sealer.seal(key, keyContext(name)),
      version: 1,
      sealed: sealSymmetricKey(Buffer.from(key, "hex"), site, name),
      when_created: at,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  await keysChanged(work, site);
  return id;
}

/** Seals the keys again after the site's secret16 changed. What the keys seal stays as it is. */
export async function resealKeys(work: Work, site: SiteWithSecret): Promise<void> {
  const keys = await work.tx
    .selectFrom("symmetric_keys")
    .select("id")
    .where("deployment_site_id", "=", site.id)
    .execute();
  const ids = keys.map(({ id }) => id);
  if (ids.length === 0) return; // Its first key could not be made: see first-keys.ts.
  await sealKeys(work, site, ids);
  await tellKeys(work, site.id);
}

async function sealKeys(work: Work, site: SiteWithSecret, ids: readonly number[]): Promise<void> {
  for (const id of ids) {
    const { name, version } = await work.tx
      .selectFrom("symmetric_keys")
      .select(["name", "version"])
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    const sealed = sealSymmetricKey(await openKey(work, name), site, name);
    await work.tx
      .updateTable("symmetric_keys")
      .set({ sealed, version: version + 1 })
      .where("id", "=", id)
      .execute();
  }
}

async function openKey({ tx, sealer }: Work, name: string): Promise<Uint8Array> {
  const { key_sealed: sealed } = await tx
    .selectFrom("symmetric_keys")
    .select("key_sealed")
    .where("name", "=", name)
    .executeTakeFirstOrThrow();
  return Buffer.from(sealer.open(sealed, keyContext(name)), "hex");
}

/** The entry of keys comes first: superseded entries leave the last of each kind, and certificates need the keys of theirs. */
async function keysChanged(work: Work, site: SiteWithSecret): Promise<void> {
  await tellKeys(work, site.id);
  if (await followNewestKey(work, site)) await tellCertificates(work, site.id);
}

export async function newestKey(
  work: Work,
  deploymentSiteId: number,
): Promise<{ readonly name: string; readonly key: Uint8Array }> {
  const { name } = await work.tx
    .selectFrom("symmetric_keys")
    .select("name")
    .where("deployment_site_id", "=", deploymentSiteId)
    .orderBy("id", "desc")
    .executeTakeFirstOrThrow();
  return { name, key: await openKey(work, name) };
}

/**
 * The most values in a statement: 1,000 of up to 22,000 characters would be much; these are 5 MiB at worst.
 */
const sealedPerStatement = 250;

/** Seals anew the private keys that another key than the newest seals. False where there are none. */
async function followNewestKey(work: Work, { id, name16 }: SiteWithSecret): Promise<boolean> {
  const { tx, sealer } = work;
  const newest = await newestKey(work, id);
  const rows = await tx
    .selectFrom("certificates")
    .select(["id", "fingerprint", "private_key_sealed"])
    .where("deployment_site_id", "=", id)
    .where("key_name", "!=", newest.name)
    .execute();
  for await (const part of pacedParts(rows, sealedPerStatement)) {
    const sealed = part.map(({ id: certificateId, fingerprint, private_key_sealed: atRest }) => {
      const place = { name16, fingerprint };
      const pem = sealer.open(atRest, privateKeyContext(place));
      const forTheWay = sealPrivateKey(pem, newest.key, place);
      return sql`(CAST(${certificateId} AS integer), ${forTheWay})`;
    });
    await sql`
      UPDATE certificates SET key_name = ${newest.name}, sealed_key = anew.column2
      FROM (VALUES ${sql.join(sealed)}) AS anew WHERE certificates.id = anew.column1
    `.execute(tx);
  }
  return rows.length > 0;
}
