// What became of the certificates of a site that arrived at a host or lie on it: all of them are opened, or none is.

import type { CertificateFacts } from "./certificate-choice.ts";
import type { CertificateTableRef } from "./certificate-table.ts";
import type { Sha256 } from "../ids.ts";

/** The file of the vault that holds the certificates, as agent.db remembers it. */
export type StoredCertificates = { readonly sha256: Sha256; readonly count: number };

/** The certificates are opened and durable. */
export type ReadyCertificates = {
  readonly kind: "ready";
  /** Null if the site has none. */
  readonly stored: StoredCertificates | null;
  readonly table: CertificateTableRef | undefined;
  readonly facts: readonly CertificateFacts[];
  /** The symmetric keys that they are sealed with. */
  readonly keyNames: ReadonlySet<string>;
};

/**
 * A symmetric key does not open with this host's secret16. The certificates are durable: another secret16
 * opens them at the next start.
 */
export type LockedCertificates = {
  readonly kind: "locked";
  readonly stored: StoredCertificates;
  readonly keyNames: ReadonlySet<string>;
  readonly reason: string;
};

export type FoundCertificates =
  | ReadyCertificates
  | LockedCertificates
  | { readonly kind: "invalid"; readonly reason: string }
  /** The file does not hold what was written to it. */
  | { readonly kind: "torn" };
