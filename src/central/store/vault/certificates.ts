// Certificates of deployment sites. One per set of names: the last that was given is the one that is served.

import { sql } from "kysely";
import { sealPrivateKey } from "../../../base/vault-seal.ts";
import type { Sha256 } from "../../../core/ids.ts";
import type { Certificate } from "../../../wire/customer/certificate.ts";
import { certificatesBytesMax, certificatesMax } from "../../../wire/vault.ts";
import { isAbsent, readProof } from "../journal/proof.ts";
import { tellCertificates } from "./site-vault.ts";
import { newestKey, privateKeyContext } from "./symmetric-keys.ts";
import type { PageRange, Work } from "../engine/work.ts";

type Site = { readonly id: number; readonly name16: string };

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

export function certificates(work: Work) {
  return {
    list: (siteId: number, range: PageRange) => listCertificates(work, siteId, range),
    add: (site: Site, given: CheckedCertificate) => addCertificate(work, site, given),

    async remove(siteId: number, id: number): Promise<"removed" | "missing"> {
      const gone = await work.tx
        .deleteFrom("certificates")
        .where("deployment_site_id", "=", siteId)
        .where("id", "=", id)
        .returning("id")
        .executeTakeFirst();
      if (gone === undefined) return "missing";
      await tellCertificates(work, siteId);
      return "removed";
    },
  };
}

async function listCertificates(
  { tx, at }: Work,
  siteId: number,
  range: PageRange,
): Promise<readonly Certificate[]> {
  const rows = await tx
    .selectFrom("certificates")
    .select(["id", "names", "not_before", "not_after", "fingerprint", "when_created"])
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
  const proof = await readProof(tx, siteId, told.certificates_seq ?? 0, Date.parse(at));
  const { error } = proof;
  const state = isAbsent(proof) ? "absent" : proof.state;
  // Written below.
  return rows.map((row) => ({
    ...row,
    names: JSON.parse(row.names) as string[],
    fingerprint: row.fingerprint as Sha256,
    state,
    ...(error !== undefined && { error }),
  }));
}

/** The same one again changes nothing. */
async function addCertificate(
  work: Work,
  site: Site,
  given: CheckedCertificate,
): Promise<number | "too-many"> {
  const { tx, at, sealer } = work;
  const names = JSON.stringify(given.names);
  const before = await tx
    .selectFrom("certificates")
    .select(["id", "fingerprint", "chain"])
    .where("deployment_site_id", "=", site.id)
    .where((where) =>
      where.or([where("names", "=", names), where("fingerprint", "=", given.fingerprint)]),
    )
    .execute();
  const same = before.find(
    ({ fingerprint, chain }) => fingerprint === given.fingerprint && chain === given.chain,
  );
  if (same !== undefined) return same.id;
  const { fingerprint } = given;
  const place = { name16: site.name16, fingerprint };
  const newest = await newestKey(work, site.id);
  if (before.length > 0)
    await tx
      .deleteFrom("certificates")
      .where(
        "id",
        "in",
        before.map(({ id }) => id),
      )
      .execute();
  const { id } = await tx
    .insertInto("certificates")
    .values({
      deployment_site_id: site.id,
      names,
      not_before: given.notBefore,
      not_after: given.notAfter,
      fingerprint,
      chain: given.chain,
      private_key_sealed: sealer.seal(
        given.privateKey,
        privateKeyContext(site.name16, fingerprint),
      ),
      key_name: newest.name,
      sealed_key: sealPrivateKey(given.privateKey, newest.key, place),
      when_created: at,
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
