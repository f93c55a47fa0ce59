// Two pieces of shared memory in which tables of certificates take turns. New memory for each would be gigabytes before any thread collects it: 600 tables of
// 4 MiB, handed to two threads, took 2 GB.

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

  /** `left` resolves when no thread reads an older table any more than the one in force. */
  constructor(left: () => Promise<void>) {
    this.#left = left;
  }

  /** Into the memory that is not in force: one table at a time is on its way. */
  async encode(certificates: readonly InstalledCertificate[]): Promise<CertificateTableRef> {
    await this.#left();
    return encodeCertificates((this.#tables += 1), certificates, (bytes) => this.#room(bytes));
  }

  use(table: CertificateTableRef | undefined): void {
    this.#inForce = table?.bytes;
  }

  /** No private key stays in memory that is not in force. */
  async wipe(): Promise<void> {
    await this.#left();
    for (const arena of this.#arenas) if (arena !== this.#inForce) new Uint8Array(arena).fill(0);
  }

  #room(bytes: number): SharedArrayBuffer {
    const free = this.#arenas.find((arena) => arena !== this.#inForce);
    if (free !== undefined) new Uint8Array(free).fill(0);
    if (free !== undefined && free.byteLength >= bytes) return free;
    // Powers of two: growing by one certificate after the other takes few of them.
    const made = new SharedArrayBuffer(Math.max(bytesMin, 2 ** Math.ceil(Math.log2(bytes))));
    const kept = this.#arenas.filter((arena) => arena === this.#inForce);
    this.#arenas = [...kept, made];
    return made;
  }
}
