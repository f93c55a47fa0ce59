// The certificates on this host: `vault/certificates-<sha256>.json`, mode 0600, UTF-8 JSON `{certificates:
// […]}` as on the wire, so that each private key stays sealed with the symmetric key it came with. The name
// is the digest of the content; agent.db says which file is in force.

import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseJson } from "../../core/journal/json-text.ts";
import { writeDurable } from "../../base/durable-file.ts";
import { sha256Of, type Sha256 } from "../../core/ids.ts";
import { decodeCertificates, type CertificateState } from "../../wire/vault.ts";

const pattern = /^certificates-[0-9a-f]{64}\.json$/;

export class CertificateFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Writes a file and returns its digest; it is durable when this resolves. */
  async write(bytes: Uint8Array): Promise<Sha256> {
    const sha256 = sha256Of(bytes);
    await writeDurable(this.#path(sha256), bytes);
    return sha256;
  }

  /** Reads a file; undefined if it is missing or damaged. */
  async read(sha256: Sha256): Promise<readonly CertificateState[] | undefined> {
    const bytes = await readFile(this.#path(sha256)).catch(() => undefined);
    if (bytes === undefined || sha256Of(bytes) !== sha256) return undefined;
    const decoded = parseCertificates(bytes);
    return typeof decoded === "string" ? undefined : decoded;
  }

  /** Removes all other files, and what a crash left of a file that was being written. */
  async keepOnly(needed: ReadonlySet<Sha256>): Promise<void> {
    const kept = new Set([...needed].map(nameOf));
    for (const name of await readdir(this.#directory))
      if ((pattern.test(name) && !kept.has(name)) || name.endsWith(".tmp"))
        await rm(join(this.#directory, name), { force: true });
  }

  #path(sha256: Sha256): string {
    return join(this.#directory, nameOf(sha256));
  }
}

const nameOf = (sha256: Sha256): string => `certificates-${sha256}.json`;

/** Parses certificates; returns a text with what is wrong with them if they are not valid. */
export function parseCertificates(bytes: Uint8Array): readonly CertificateState[] | string {
  const raw = parseJson(bytes);
  if (raw === undefined) return "they are no JSON";
  const decoded = decodeCertificates(raw);
  if (decoded.ok) return decoded.value.certificates;
  // The message says where and not what, for a value may hold part of a key.
  return `${decoded.errors.map(({ path }) => path).join(", ")} is not valid`;
}
