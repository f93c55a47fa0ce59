// What a PEM text holds: its certificates and its private key, each block as it was written. Pure.

const block = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g;

export type PemParts = { readonly certificates: string; readonly privateKey: string };

/** Blocks of other kinds (parameters of a key exchange, for one) and what stands between blocks are left out. */
export function pemParts(text: string): PemParts {
  const found = [...text.matchAll(block)].map(([whole, kind = ""]) => ({ whole, kind }));
  const joined = (is: (kind: string) => boolean): string =>
    found.flatMap(({ whole, kind }) => (is(kind) ? [`${whole}\n`] : [])).join("");
  return {
    certificates: joined((kind) => /^(?:X509 |TRUSTED )?CERTIFICATE$/.test(kind)),
    privateKey: joined((kind) => kind.endsWith("PRIVATE KEY")),
  };
}
