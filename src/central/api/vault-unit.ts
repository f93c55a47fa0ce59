// What the customer API needs of the store for keys and certificates. Ids of sites given to it belong to the customer.

import type { Sha256 } from "../../core/ids.ts";
import type { Certificate } from "../../wire/customer/certificate.ts";
import type { SymmetricKey } from "../../wire/customer/symmetric-key.ts";
import type { PageRange } from "./content-unit.ts";

export type SymmetricKeys = {
  list(customerId: number, range: PageRange): Promise<readonly SymmetricKey[]>;
  record(customerId: number, id: number): Promise<SymmetricKey | undefined>;
  create(deploymentSiteId: number): Promise<number | "too-many">;
  /** `only-key`: the site that has it would have none. */
  move(
    key: { readonly id: number; readonly deployment_site_id: number },
    toSiteId: number,
  ): Promise<"moved" | "only-key" | "too-many">;
};

/** Checked: key and chain belong together. */
export type CheckedCertificate = {
  /** Sorted, each once. */
  readonly names: readonly string[];
  /** ISO 8601. */
  readonly notBefore: string;
  readonly notAfter: string;
  /** SHA-256 of the leaf as DER. */
  readonly fingerprint: Sha256;
  /** PEM, the leaf first. */
  readonly chain: string;
  /** PKCS#8 PEM. */
  readonly privateKey: string;
};

export type Certificates = {
  list(siteId: number, range: PageRange): Promise<readonly Certificate[]>;
  /** In place of one for the same names. */
  add(
    site: { readonly id: number; readonly name16: string },
    given: CheckedCertificate,
  ): Promise<number | "too-many">;
  remove(siteId: number, id: number): Promise<"removed" | "missing">;
};
