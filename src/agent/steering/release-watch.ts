// What operators see of versions: warnings while a domain is served with another version than central wants,
// metrics, log lines. It decides nothing.

import { createMetrics, type Instruments } from "../../base/metrics.ts";
import type { ReadyViewset } from "../../core/serving/compose-state.ts";
import { FAULTS, messageOf } from "../../core/faults.ts";
import {
  inForceOf,
  standingOf,
  type Pin,
  type ReleaseBook,
  type Standing,
  type ViewsetRef,
} from "../../core/serving/release-list.ts";

export type ReleaseWatchOptions = Instruments & {};

export const releaseMetrics = {
  accel_agent_viewset_standing: {
    kind: "gauge",
    help: "Domains by how far this host is with the version that central wants: in_force, pinned, quarantined, behind (refused for a reason that may pass, or not tried yet).",
    labels: ["standing"],
  },
  accel_agent_viewset_probes_failed_total: {
    kind: "counter",
    help: "Versions that failed a probe, when staged or on trial.",
    labels: ["when"],
  },
  accel_agent_viewset_rollbacks_total: {
    kind: "counter",
    help: "Returns to a kept version, by an operator or by a failed trial.",
    labels: ["by"],
  },
} as const;

const labels: Readonly<Record<Standing["kind"], string>> = {
  "in force": "in_force",
  pinned: "pinned",
  quarantined: "quarantined",
  behind: "behind",
};

export class ReleaseWatch {
  readonly #options: ReleaseWatchOptions;
  readonly #metrics;
  readonly #standings = new Map<string, Standing["kind"]>();

  constructor(options: ReleaseWatchOptions) {
    this.#options = options;
    this.#metrics = createMetrics(releaseMetrics, options.registry);
    this.#count();
  }

  /** Shows how the domain stands by its book as committed last. */
  tell(domain: string, book: ReleaseBook): void {
    const { wish } = book;
    const standing = wish === null ? undefined : standingOf(book, wish.manifest);
    if (standing === undefined) this.#standings.delete(domain);
    else this.#standings.set(domain, standing.kind);
    this.#count();
    const { health } = this.#options;
    const served = inForceOf(book)?.viewset_name;
    const serving = served === undefined ? "what it had" : JSON.stringify(served);
    if (standing?.kind === "pinned") {
      const text = `${domain} is pinned to ${serving} by an operator; central wants ${JSON.stringify(wish?.viewset_name)}`;
      const hint = `\`accel-agent viewset retry ${domain}\` serves what central wants; so does another activation at central.`;
      health.raise("viewset_pinned", "warning", text, hint, domain);
    } else health.settle("viewset_pinned", domain);
    if (standing?.kind === "quarantined") {
      const { viewset_name: name, reason } = standing.bad;
      const text = `version ${JSON.stringify(name)} of ${domain} failed on this host, ${serving} is served: ${reason}`;
      const hint = `Activate another version; once the cause is gone, \`accel-agent viewset retry ${domain}\` tries this one again.`;
      health.raise("viewset_quarantined", "error", text, hint, domain);
    } else health.settle("viewset_quarantined", domain);
    const failed = standing?.kind === "behind" ? wish?.failed : undefined;
    if (failed !== undefined) {
      const text = `version ${JSON.stringify(wish?.viewset_name)} of ${domain} is not served on this host, ${serving} is: ${failed.reason}`;
      const hint = `${FAULTS[failed.code].hint} \`accel-agent viewset retry ${domain}\` tries it again at once.`;
      health.raise("viewset_not_served", "error", text, hint, domain);
    } else health.settle("viewset_not_served", domain);
  }

  /** Notes that the book of releases could not be written. */
  unwritable(domain: string, error: unknown): void {
    this.#options.log.error({ domain, error: messageOf(error) }, "what failed is not remembered");
  }

  forget(domain: string): void {
    const { health } = this.#options;
    this.#standings.delete(domain);
    this.#count();
    for (const code of [
      "viewset_pinned",
      "viewset_quarantined",
      "viewset_not_served",
      "viewset_failing",
      "viewset_objections",
    ] as const)
      health.settle(code, domain);
    this.isWhole(domain);
  }

  /**
   * Notes that the version in force, whichever it is now, was just prepared and is whole, or that there is
   * none.
   */
  isWhole(domain: string): void {
    const { health } = this.#options;
    for (const code of ["viewset_incomplete", "viewset_damaged"] as const)
      health.settle(code, domain);
  }

  probeFailed(domain: string, ref: ViewsetRef, reason: string, when: "staged" | "trial"): void {
    this.#metrics.accel_agent_viewset_probes_failed_total.inc({ when });
    const { manifest, viewset_name: name } = ref;
    this.#options.log.error({ domain, viewset_name: name, manifest, when, reason }, "probe failed");
  }

  /**
   * Notes this release's objections to the version that is in force from now on; it was taken by another
   * release or under other settings.
   */
  judged(domain: string, { objections }: Pick<ReadyViewset, "objections">): void {
    const { health } = this.#options;
    if (objections === undefined) return health.settle("viewset_objections", domain);
    const text = `The active version of ${domain} is served as it was taken; this release would refuse it: ${objections}`;
    const hint =
      "Correct it and activate the new version. A backend that must not be asked is refused at each connection (502).";
    health.raise("viewset_objections", "warning", text, hint, domain);
  }

  /** Notes that a staged version has other bytes on this disk than it should. */
  damaged(domain: string, ref: ViewsetRef, reason: string): void {
    const { manifest, viewset_name: name } = ref;
    const said = "a file on this disk is damaged; it is fetched again";
    this.#options.log.error({ domain, viewset_name: name, manifest, reason }, said);
  }

  wentBack(domain: string, to: ViewsetRef, by: Pin["reason"]): void {
    this.#metrics.accel_agent_viewset_rollbacks_total.inc({ by });
    this.#options.health.settle("viewset_failing", domain);
    const { manifest, viewset_name: name } = to;
    this.#options.log.warn({ domain, viewset_name: name, manifest, by }, "rolled back");
  }

  /** Notes that a version fails its trial and no other can take its place. */
  stuck(domain: string, reason: string): void {
    const text = `the version of ${domain} that is served fails: ${reason}; no complete version to go back to is on this host`;
    const hint = "Activate a version that works.";
    this.#options.health.raise("viewset_failing", "error", text, hint, domain);
  }

  /** Notes that the version in force passed its trial. */
  passed(domain: string): void {
    this.#options.health.settle("viewset_failing", domain);
    this.#options.log.debug({ domain }, "the trial is over");
  }

  #count(): void {
    const standings = [...this.#standings.values()];
    for (const [standing, label] of Object.entries(labels))
      this.#metrics.accel_agent_viewset_standing.set(
        { standing: label },
        standings.filter((one) => one === standing).length,
      );
  }
}
