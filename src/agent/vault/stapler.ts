// Keeps an answer of OCSP for each certificate in force, in the background: asked for when the certificate comes, again when half of its time has passed, and after a
// failure with growing pauses. What is kept is good, verified and of now, or there is nothing; no handshake ever waits for it.

import { setImmediate } from "node:timers/promises";
import { createMetrics, type Registry } from "../../base/metrics.ts";
import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { backoffMs } from "../../core/backoff.ts";
import { messageOf } from "../../core/faults.ts";
import { judgeOcsp, ocspRequest, ocspSubject, type OcspSubject } from "./ocsp/ocsp.ts";
import type { Staple } from "../../core/serving/staple.ts";
import {
  CertificateTable,
  type CertificateTableRef,
} from "../../core/serving/certificate-table.ts";
import type { AskResponder } from "./ask-responder.ts";

export const staplerMetrics = {
  accel_agent_ocsp_staples: {
    kind: "gauge",
    help: "Certificates in force that name a responder of OCSP, by what visitors get: stapled, absent (nothing valid is there), revoked (nothing is stapled).",
    labels: ["state"],
  },
  accel_agent_ocsp_fetches_total: {
    kind: "counter",
    help: "Questions to responders of OCSP, by outcome: good, revoked, unusable (an answer that does not verify or is out of date), unreachable.",
    labels: ["outcome"],
  },
} as const;

export type StaplerOptions = {
  readonly ask: AskResponder;
  readonly now: () => Date;
  readonly random: () => number;
  /** Told of all staples whenever they change. Must not throw. */
  readonly onStaples: (staples: readonly Staple[]) => void;
  readonly registry: Registry;
  readonly health: Health;
  readonly log: Log;
};

type Kept = {
  readonly fingerprint: string;
  readonly name: string;
  /** Until it was looked at. */
  chain: string | undefined;
  /** Undefined: not looked at yet, or nobody can be asked about it. */
  subject: OcspSubject | undefined;
  staple: Staple | undefined;
  isRevoked: boolean;
  failures: number;
  dueMs: number;
};

const atOnce = 4;
/** Whatever an answer says of its time, its responder is asked so often at most, and at least. */
const soonestMs = 300_000;
const latestMs = 86_400_000;
const failureBackoff = { firstMs: 60_000, mostMs: 3_600_000 };
const namedMax = 3;

export class Stapler {
  readonly #options: StaplerOptions;
  readonly #metrics;
  #tableNo: number | undefined;
  #kept = new Map<string, Kept>();

  constructor(options: StaplerOptions) {
    this.#options = options;
    this.#metrics = createMetrics(staplerMetrics, options.registry);
    this.#tell();
  }

  /** Takes the certificates in force; those that are known keep their answers. */
  follow(ref: CertificateTableRef | undefined): void {
    if (ref?.no === this.#tableNo) return;
    this.#tableNo = ref?.no;
    const table = ref === undefined ? undefined : new CertificateTable(ref);
    const next = new Map<string, Kept>();
    for (const certificate of table?.certificates ?? []) {
      const { fingerprint, names } = certificate;
      const known = this.#kept.get(fingerprint);
      const fresh = { subject: undefined, staple: undefined, isRevoked: false };
      const due = { failures: 0, dueMs: 0, chain: table?.chainOf(certificate) };
      next.set(fingerprint, known ?? { fingerprint, name: names[0] ?? "", ...fresh, ...due });
    }
    this.#kept = next;
    this.#changed();
  }

  /** Asks for what is due; to be called every now and then. Never throws. */
  async look(): Promise<void> {
    const due = [...this.#kept.values()].filter(({ dueMs }) => dueMs <= this.#nowMs());
    const one = async (): Promise<void> => {
      for (let next = due.shift(); next !== undefined; next = due.shift()) await this.#ask(next);
    };
    await Promise.all(Array.from({ length: atOnce }, one));
    this.#changed();
  }

  async #ask(kept: Kept): Promise<void> {
    const { ask, log } = this.#options;
    const { fingerprint, name } = kept;
    const subject = await this.#subject(kept);
    if (subject === undefined) return;
    const count = (outcome: string): void =>
      this.#metrics.accel_agent_ocsp_fetches_total.inc({ outcome });
    let response: Uint8Array;
    try {
      response = await ask(subject.url, ocspRequest(subject));
    } catch (error) {
      count("unreachable");
      this.#failed(kept);
      log.warn({ name, url: subject.url, reason: messageOf(error) }, "no answer of OCSP");
      return;
    }
    const judged = judgeOcsp(subject, response, this.#nowMs());
    count(judged.kind);
    if (judged.kind === "unusable") {
      this.#failed(kept);
      log.warn(
        { name, url: subject.url, reason: judged.reason },
        "the answer of OCSP is not stapled",
      );
      return;
    }
    kept.failures = 0;
    kept.isRevoked = judged.kind === "revoked";
    if (judged.kind === "revoked") {
      kept.staple = undefined;
      kept.dueMs = this.#nowMs() + failureBackoff.mostMs;
      return;
    }
    const { thisUpdateMs, nextUpdateMs } = judged;
    kept.staple = { fingerprint, response, untilMs: nextUpdateMs };
    const halfMs = (thisUpdateMs + nextUpdateMs) / 2 - this.#nowMs();
    kept.dueMs = this.#nowMs() + Math.min(latestMs, Math.max(soonestMs, halfMs));
  }

  /** One in a turn: verifying ten thousand at once would stop the thread for seconds. */
  async #subject(kept: Kept): Promise<OcspSubject | undefined> {
    if (kept.chain === undefined) return kept.subject;
    await setImmediate();
    kept.subject = ocspSubject(kept.chain);
    kept.chain = undefined;
    if (kept.subject === undefined) kept.dueMs = Infinity;
    return kept.subject;
  }

  #failed(kept: Kept): void {
    const { firstMs } = failureBackoff;
    const pauseMs = backoffMs(kept.failures++, this.#options.random(), failureBackoff);
    kept.dueMs = this.#nowMs() + firstMs + pauseMs;
  }

  #nowMs(): number {
    return this.#options.now().getTime();
  }

  #changed(): void {
    const nowMs = this.#nowMs();
    for (const kept of this.#kept.values())
      if (kept.staple !== undefined && kept.staple.untilMs <= nowMs) kept.staple = undefined;
    const staples = [...this.#kept.values()].map(({ staple }) => staple);
    this.#options.onStaples(staples.filter((staple) => staple !== undefined));
    this.#tell();
  }

  #tell(): void {
    const all = [...this.#kept.values()].filter(({ subject }) => subject !== undefined);
    const revoked = all.filter(({ isRevoked }) => isRevoked);
    const absent = all.filter(({ staple, isRevoked }) => staple === undefined && !isRevoked);
    const gauge = this.#metrics.accel_agent_ocsp_staples;
    gauge.set({ state: "revoked" }, revoked.length);
    gauge.set({ state: "absent" }, absent.length);
    gauge.set({ state: "stapled" }, all.length - revoked.length - absent.length);
    const failing = absent.filter(({ failures }) => failures > 0);
    const must = failing.filter(({ subject }) => subject?.isMustStaple === true);
    this.#warn("certificate_revoked", "error", revoked, {
      what: "revoked, as their responder says: browsers refuse them",
      hint: "Upload others for the same names: POST /upload/certificates/{deployment_name}/.",
    });
    this.#warn("ocsp_must_staple", "error", must, {
      what: "to be served with an answer of OCSP (must-staple) and there is none: browsers refuse them",
      hint: "The log says what became of each question. This host must reach the responder that the certificate names, over plain HTTP.",
    });
    this.#warn(
      "ocsp_absent",
      "warning",
      failing.filter((one) => !must.includes(one)),
      {
        what: "served without an answer of OCSP, for their responder gives none: visitors may ask it themselves",
        hint: "The log says what became of each question. `accelerator.ocsp_stapling: off` asks nobody.",
      },
    );
  }

  #warn(
    code: "certificate_revoked" | "ocsp_must_staple" | "ocsp_absent",
    severity: "error" | "warning",
    kept: readonly Kept[],
    { what, hint }: { readonly what: string; readonly hint: string },
  ): void {
    const { health } = this.#options;
    if (kept.length === 0) {
      health.settle(code);
      return;
    }
    const named = kept.slice(0, namedMax).map(({ name }) => name);
    const more = kept.length > namedMax ? ` and ${kept.length - namedMax} more` : "";
    health.raise(code, severity, `certificates are ${what}: ${named.join(", ")}${more}`, hint);
  }
}
