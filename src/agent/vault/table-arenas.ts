// Two pieces of shared memory in which tables of certificates take turns. New memory for each table would
// grow to gigabytes before any thread collects garbage: 600 tables of 4 MiB, handed to two threads, took 2
// GB.

import {
  encodeCertificates,
  type CertificateTableRef,
  type InstalledCertificate,
} from "../../core/serving/certificate-table.ts";

const bytesMin = 65_536;

export class TableArenas {
  readonly #left: () => Promise<void>;
  #arenas: readonly SharedArrayBuffer[] = [];
  #inForce: SharedArrayBuffer | undefined;
  #tables = 0;

  /** `left` resolves when no thread reads a table older than the one in force. */
  constructor(left: () => Promise<void>) {
    this.#left = left;
  }

  /** Encodes a table into the memory that is not in force; only one table may be on its way at a time. */
  async encode(certificates: readonly InstalledCertificate[]): Promise<CertificateTableRef> {
    await this.#left();
    return encodeCertificates((this.#tables += 1), certificates, (bytes) => this.#room(bytes));
  }

  use(table: CertificateTableRef | undefined): void {
    this.#inForce = table?.bytes;
  }

  /** Overwrites the memory that is not in force, so that no private key stays there. */
  async wipe(): Promise<void> {
    await this.#left();
    for (const arena of this.#arenas) if (arena !== this.#inForce) new Uint8Array(arena).fill(0);
  }

  #room(bytes: number): SharedArrayBuffer {
    const free = this.#arenas.find((arena) => arena !== this.#inForce);
    if (free !== undefined) new Uint8Array(free).fill(0);
    if (free !== undefined && free.byteLength >= bytes) return free;
    // Sizes are powers of two, so that a table that grows one certificate at a time needs few allocations.
    const made = new SharedArrayBuffer(Math.max(bytesMin, 2 ** Math.ceil(Math.log2(bytes))));
    const kept = this.#arenas.filter((arena) => arena === this.#inForce);
    this.#arenas = [...kept, made];
    return made;
  }
}
