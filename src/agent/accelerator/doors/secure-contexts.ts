// TLS contexts of the certificates in the state in force, made when a visitor first asks for a name and kept while they are asked for.

import { createHash } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import { CertificateChoice } from "../../../core/serving/certificate-choice.ts";
import {
  CertificateTable,
  type CertificateTableRef,
  type ListedCertificate,
} from "../../../core/serving/certificate-table.ts";
import type { WorkerClock } from "../clock.ts";
import type { ProblemLog } from "../records/problem-log.ts";

/** About 50 KiB each: 25 MiB a worker. */
const contextsMax = 512;
/** The longest time that a ticket opens; see ticket-keys.ts. */
export const sessionTimeoutS = 12 * 3_600;
/** The same in all workers and for all names: a session is resumed by whichever worker the visitor meets. */
export const sessionIdContext = createHash("sha256")
  .update("accel-agent")
  .digest("hex")
  .slice(0, 32);
export const minVersion = "TLSv1.2";

export type SecureContextsDeps = {
  /** Returns the certificates of the state in force. */
  readonly current: () => CertificateTableRef | undefined;
  readonly clock: WorkerClock;
  readonly problems: ProblemLog;
};

type Known = {
  readonly no: number;
  readonly table: CertificateTable;
  readonly choice: CertificateChoice<ListedCertificate>;
};

export class SecureContexts {
  readonly #deps: SecureContextsDeps;
  /** By digest, the one that was asked for last at the end. A new state does not make them anew; a new chain of the same leaf does. */
  readonly #contexts = new Map<string, SecureContext>();
  #known: Known | undefined;

  constructor(deps: SecureContextsDeps) {
    this.#deps = deps;
  }

  /** Undefined: no certificate covers the name. */
  find(host: string): SecureContext | undefined {
    const known = this.#look();
    const certificate = known?.choice.find(host, this.#deps.clock.wallMs());
    if (known === undefined || certificate === undefined) return undefined;
    const { digest } = certificate;
    const context = this.#contexts.get(digest) ?? this.#make(known.table, certificate);
    if (context === undefined) return undefined;
    this.#contexts.delete(digest);
    this.#contexts.set(digest, context);
    const oldest = this.#contexts.keys().next().value;
    if (this.#contexts.size > contextsMax && oldest !== undefined) this.#contexts.delete(oldest);
    return context;
  }

  #look(): Known | undefined {
    const ref = this.#deps.current();
    if (ref === undefined) this.#known = undefined;
    else if (this.#known?.no !== ref.no) {
      const table = new CertificateTable(ref);
      const choice = new CertificateChoice(table.certificates);
      this.#known = { no: ref.no, table, choice };
      const held = new Set(table.certificates.map(({ digest }) => digest));
      // Private keys of what was taken away do not stay in memory.
      for (const digest of this.#contexts.keys())
        if (!held.has(digest)) this.#contexts.delete(digest);
    }
    return this.#known;
  }

  /** Chain and key were checked when they were installed; what this library does not take all the same must not end the worker. */
  #make(table: CertificateTable, certificate: ListedCertificate): SecureContext | undefined {
    try {
      return createSecureContext({
        cert: table.chainOf(certificate),
        key: table.keyOf(certificate),
        minVersion,
        sessionIdContext,
        sessionTimeout: sessionTimeoutS,
      });
    } catch (error) {
      const { fingerprint } = certificate;
      this.#deps.problems.tell("error", null, `certificate ${fingerprint} is not usable`, error);
      return undefined;
    }
  }
}
