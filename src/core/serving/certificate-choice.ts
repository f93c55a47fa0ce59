// Chooses the certificate for a host name (RFC 9525 §6.3): one that names it before one whose wildcard covers
// it, one that is valid now before one that is not, a newer one before an older one. Addresses are not
// served: clients that ask for an address send no name.

export type CertificateFacts = {
  /**
   * The names as central says them: in lower case, addresses among them, with `*.` before those of wildcards.
   */
  readonly names: readonly string[];
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
};

/** Keeps the candidates of each name, newest first. Whether one is valid is asked when it is needed. */
export class CertificateChoice<C extends CertificateFacts> {
  readonly #exact = new Map<string, C[]>();
  /** The certificates of wildcards, by the name behind `*.`. */
  readonly #wildcards = new Map<string, C[]>();

  constructor(certificates: readonly C[]) {
    const newestFirst = certificates.toSorted(
      (one, other) => other.notBeforeMs - one.notBeforeMs || other.notAfterMs - one.notAfterMs,
    );
    for (const certificate of newestFirst)
      for (const name of new Set(certificate.names)) {
        const isWildcard = name.startsWith("*.");
        const [list, key] = isWildcard ? [this.#wildcards, name.slice(2)] : [this.#exact, name];
        const known = list.get(key);
        if (known === undefined) list.set(key, [certificate]);
        else known.push(certificate);
      }
  }

  /**
   * Returns undefined if none covers the name. An expired certificate is better than none: the client itself
   * reports that it has expired.
   */
  find(host: string, nowMs: number): C | undefined {
    const name = plainName(host);
    const dot = name.indexOf(".");
    // A wildcard stands for one whole label, the first one.
    const covering = dot > 0 ? (this.#wildcards.get(name.slice(dot + 1)) ?? []) : [];
    const candidates = [...(this.#exact.get(name) ?? []), ...covering];
    return (
      candidates.find(
        ({ notBeforeMs, notAfterMs }) => notBeforeMs <= nowMs && nowMs <= notAfterMs,
      ) ?? candidates[0]
    );
  }
}

function plainName(host: string): string {
  const name = host.toLowerCase();
  return name.endsWith(".") ? name.slice(0, -1) : name;
}
