// An answer of OCSP as it travels from the vault, which has verified it, to the workers, which send it along with the certificate.

/** An answer that visitors get beside the certificate until that time. */
export type Staple = {
  /** SHA-256 of the leaf as DER. */
  readonly fingerprint: string;
  readonly response: Uint8Array;
  readonly untilMs: number;
};
