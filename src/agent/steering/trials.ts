// A version that central wanted is on trial for a while after it came into force: its probes are repeated in
// every worker, and one that fails brings the version before back. Only local answers count: what an origin
// answers never fails a trial. Nor does a file that this disk damages, unless it is damaged again after it
// was fetched again.

import { sleep } from "../../base/wait.ts";
import { codeOf, messageOf } from "../../core/faults.ts";
import {
  inForceOf,
  standingOf,
  type Quarantined,
  type Release,
  type ReleaseBook,
} from "../../core/serving/release-list.ts";
import type { Log } from "../../base/log.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { WorkerPool } from "../accelerator/pool/workers.ts";
import type { Documents } from "../link/agent-db.ts";
import type { Activations } from "./activation.ts";
import type { ReleaseBooks } from "./release-books.ts";
import type { ReleaseWatch } from "./release-watch.ts";
import { stuckCorrections } from "./release-words.ts";
import type { Repairs } from "./repairs.ts";
import type { Serving } from "./serving.ts";
import { findFault } from "./staged-probes.ts";

export type TrialPorts = {
  readonly serving: Pick<Serving, "state" | "names">;
  readonly activations: Pick<Activations, "goBack">;
  readonly books: ReleaseBooks;
  readonly documents: Documents;
  readonly pool: Pick<WorkerPool, "probe">;
  readonly watch: ReleaseWatch;
  readonly repairs: Pick<Repairs, "mend">;
  /** Setting `viewset.trial` in milliseconds; 0 means no trials. */
  readonly trialMs: number;
  readonly now: () => Date;
  readonly log: Log;
  readonly stop: AbortSignal;
  /** Replaced by tests. */
  readonly wait?: typeof sleep;
};

/** The rounds of probes after the first one, which begins at once; they are spread over the window. */
const rounds = 6;

type Looked = { readonly kind: "fine" | "over" } | { readonly kind: "failed"; reason: string };

type Trial = { readonly manifest: Sha256; readonly untilMs: number; readonly end: AbortController };

export class Trials implements AsyncDisposable {
  readonly #ports: TrialPorts;
  readonly #wait: typeof sleep;
  readonly #own = new AbortController();
  readonly #running = new Map<string, Trial>();
  readonly #ending = new Set<Promise<void>>();

  constructor(ports: TrialPorts) {
    this.#ports = ports;
    this.#wait = ports.wait ?? sleep;
  }

  /** Begins a trial in place of the domain's trial that is under way. */
  begin(domain: string, manifest: Sha256): void {
    const { trialMs, now, stop } = this.#ports;
    this.#running.get(domain)?.end.abort();
    if (trialMs === 0 || this.#own.signal.aborted) return;
    const trial = { manifest, untilMs: now().getTime() + trialMs, end: new AbortController() };
    this.#running.set(domain, trial);
    const ended = AbortSignal.any([stop, this.#own.signal, trial.end.signal]);
    const run = this.#run(domain, manifest, ended)
      .catch((error: unknown) => this.#defect(domain, error))
      .finally(() => {
        this.#ending.delete(run);
        if (this.#running.get(domain) === trial) this.#running.delete(domain);
      });
    this.#ending.add(run);
  }

  /**
   * Resumes after a start the trials that the end of the process cut short, but not those of `torn` domains:
   * what these lack is the disk's fault, and is fetched again.
   */
  resume(torn: readonly string[] = []): void {
    const { books, trialMs, now } = this.#ports;
    for (const domain of books.domains().filter((name) => !torn.includes(name))) {
      const book = books.of(domain);
      const release = inForceOf(book);
      const sinceMs = release === undefined ? NaN : Date.parse(release.activated_at);
      if (release === undefined || !(now().getTime() - sinceMs < trialMs)) continue;
      if (standingOf(book, release.manifest).kind === "in force" && book.pin === null)
        this.begin(domain, release.manifest);
    }
  }

  /** Returns when the trial of the domain ends, ISO 8601; undefined if none is on trial. */
  until(domain: string): string | undefined {
    const trial = this.#running.get(domain);
    // A trial whose version has been replaced ends with its next look.
    const isOn = trial?.manifest === inForceOf(this.#ports.books.of(domain))?.manifest;
    return trial === undefined || !isOn ? undefined : new Date(trial.untilMs).toISOString();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#own.abort();
    await Promise.all(this.#ending);
  }

  async #run(domain: string, manifest: Sha256, ended: AbortSignal): Promise<void> {
    const { trialMs, watch } = this.#ports;
    const mended = new Set<Sha256>();
    for (let round = 0; round <= rounds; round++) {
      if (round > 0 && !(await this.#wait(trialMs / rounds, ended))) return;
      const looked = await this.#look(domain, manifest, mended);
      if (looked.kind === "over" || ended.aborted) return;
      if (looked.kind === "failed") {
        await this.#fail(domain, manifest, looked.reason, ended);
        return;
      }
    }
    watch.passed(domain);
  }

  /** Probes once. `mended` holds the files that were fetched again before, for this trial. */
  async #look(domain: string, manifest: Sha256, mended: Set<Sha256>): Promise<Looked> {
    const { serving, pool, repairs, log } = this.#ports;
    const { state } = serving;
    const served = state.domains.find(({ name }) => name === domain);
    if (served?.manifest !== manifest) return { kind: "over" };
    try {
      const fault = await findFault(domain, state, async (probes) => pool.probe(probes));
      // If the state that was probed is no longer served, the next round decides.
      if (fault === undefined || serving.state !== state) return { kind: "fine" };
      const { reason, damaged } = fault;
      if (damaged.every((file) => mended.has(file))) return { kind: "failed", reason };
      for (const file of damaged) mended.add(file);
      const outcome = await repairs.mend(domain, manifest, damaged, reason);
      return outcome === "whole" ? await this.#look(domain, manifest, mended) : { kind: "fine" };
    } catch (error) {
      // A host that is too busy to answer is not the version's fault.
      log.warn({ domain, code: codeOf(error), error: messageOf(error) }, "a trial could not probe");
      return { kind: "fine" };
    }
  }

  async #fail(domain: string, manifest: Sha256, reason: string, ended: AbortSignal): Promise<void> {
    const { books, watch, now, log } = this.#ports;
    const book = books.of(domain);
    const failing = inForceOf(book);
    if (failing?.manifest !== manifest) return;
    const bad = quarantined(book, failing, reason, now().toISOString());
    watch.probeFailed(domain, bad, reason, "trial");
    for (const to of candidates(book, failing)) {
      try {
        await this.#ports.activations.goBack(domain, { to, by: "trial", bad }, ended);
        return;
      } catch (error) {
        if (ended.aborted || ["CONFLICT", "NOT_FOUND"].includes(codeOf(error))) return;
        const { viewset_name: name } = to;
        log.error({ domain, viewset_name: name, error: messageOf(error) }, "no going back to it");
      }
    }
    this.#stay(domain, reason);
  }

  /** Keeps the version that fails and tells central: half a site is better than none. */
  #stay(domain: string, reason: string): void {
    const { books, documents, watch } = this.#ports;
    watch.stuck(domain, reason);
    const corrections = stuckCorrections(books.of(domain), reason);
    if (corrections.length > 0) documents.put({}, corrections);
  }

  #defect(domain: string, error: unknown): void {
    this.#ports.log.error({ domain, err: error }, "a trial broke off");
  }
}

/** Returns the versions to go back to, newest first, without those that failed here before. */
function candidates(
  { releases, quarantined: bad }: ReleaseBook,
  failing: Release,
): readonly Release[] {
  const out = new Set([failing, ...bad].map(({ manifest }) => manifest));
  return releases.filter(({ manifest }) => !out.has(manifest)).toReversed();
}

function quarantined(
  { wish }: ReleaseBook,
  { manifest, viewset_id, viewset_name }: Release,
  reason: string,
  at: string,
): Quarantined {
  const entry = wish?.manifest === manifest ? wish.entry : null;
  const code = "VIEWSET_PROBE_FAILED";
  return { manifest, viewset_id, viewset_name, reason, code, at, entry };
}
