// Files of a version in force that a worker cannot read: what is missing of the version, has another size or other bytes is fetched again while the rest
// is served. A version on trial is the trial's to judge: it says which of its files this disk damaged.

import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { retry, sleep } from "../../base/wait.ts";
import { codeOf, messageOf } from "../../core/faults.ts";
import { parseSha256, type Sha256 } from "../../core/ids.ts";
import { ManifestTable } from "../../core/serving/manifest-table.ts";
import type { ServedDomain } from "../../core/serving/serving-state.ts";
import type { Viewsets } from "../viewset/viewsets.ts";
import type { Serving } from "./serving.ts";
import type { Trials } from "./trials.ts";

export type RepairPorts = {
  readonly serving: Pick<Serving, "state" | "names">;
  readonly viewsets: Pick<Viewsets, "prepare" | "dropDamaged">;
  readonly trials: Pick<Trials, "until">;
  readonly health: Health;
  readonly log: Log;
  readonly random: () => number;
  readonly stop: AbortSignal;
  /** For tests. */
  readonly wait?: typeof sleep;
};

type Repair = { readonly files: Set<Sha256>; readonly done: Promise<boolean> };

/** After a repair the same file is not looked into again for so long: on a disk that fails each request would ask for it. */
const restMs = 30_000;

export class Repairs implements AsyncDisposable {
  readonly #ports: RepairPorts;
  readonly #wait: typeof sleep;
  readonly #own = new AbortController();
  readonly #stop: AbortSignal;
  /** Files that are being looked into, or were lately. */
  readonly #noted = new Map<Sha256, Promise<void>>();
  /** By domain and manifest: one at a time, whatever is missing. */
  readonly #repairs = new Map<string, Repair>();

  constructor(ports: RepairPorts) {
    this.#ports = ports;
    this.#wait = ports.wait ?? sleep;
    this.#stop = AbortSignal.any([ports.stop, this.#own.signal]);
  }

  /** A worker could not read it as the manifest has it. Returns at once; never throws. */
  note({ sha256, reason }: { readonly sha256: Sha256; readonly reason: string }): void {
    if (this.#noted.has(sha256) || this.#stop.aborted) return;
    const run = this.#run(sha256, reason).finally(() => this.#noted.delete(sha256));
    this.#noted.set(sha256, run);
  }

  /**
   * Those of these files that are damaged are fetched again, however long that takes. False: another version took its place, central does not have them any
   * more, or this was stopped. Never rejects.
   */
  async mend(
    domain: string,
    manifest: Sha256,
    damaged: readonly Sha256[],
    reason: string,
  ): Promise<boolean> {
    const key = `${domain} ${manifest}`;
    const known = this.#repairs.get(key);
    if (known !== undefined) {
      // What else is missing of the version comes with the repair that is under way.
      for (const sha256 of damaged) known.files.add(sha256);
      return known.done;
    }
    const files = new Set(damaged);
    const done = this.#repair(domain, manifest, files, reason);
    this.#repairs.set(key, { files, done });
    return done;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#own.abort();
    await Promise.all(this.#noted.values());
    await Promise.all([...this.#repairs.values()].map(({ done }) => done));
  }

  async #run(sha256: Sha256, reason: string): Promise<void> {
    const { serving, trials } = this.#ports;
    const lacking = serving.state.domains.filter(
      (domain) => holds(domain, sha256) && trials.until(domain.name) === undefined,
    );
    await Promise.all(
      lacking.map(async ({ name, manifest: text }) => {
        const manifest = parseSha256(text);
        if (manifest !== undefined) await this.mend(name, manifest, [sha256], reason);
      }),
    );
    await this.#wait(restMs, this.#stop);
  }

  /** Until it is whole, another version took its place, or stopped. Never rejects; what comes to `files` meanwhile is looked into as well. */
  async #repair(
    domain: string,
    manifest: Sha256,
    files: Set<Sha256>,
    reason: string,
  ): Promise<boolean> {
    const { serving, viewsets, health, log, random } = this.#ports;
    const about = `a file of the version of ${domain} in force cannot be read: ${reason}`;
    const hint = "It is fetched again from central; should it happen again, look at the disk.";
    health.raise("viewset_damaged", "error", about, hint, domain);
    log.error({ domain, manifest, reason }, "a file in force cannot be read; it is fetched again");
    let isWhole = false;
    const fetchAgain = async (): Promise<void> => {
      const served = serving.state.domains.find(({ name }) => name === domain);
      const names = serving.names(domain);
      const missed = [...files];
      isWhole = false;
      if (served?.manifest === manifest && names !== undefined) {
        await viewsets.dropDamaged(missed);
        using _ = await viewsets.prepare(manifest, names, this.#stop, "as taken");
        isWhole = true;
      }
      for (const file of missed) files.delete(file);
    };
    try {
      while (files.size > 0)
        await retry(fetchAgain, {
          stop: this.#stop,
          random,
          onFailure: (error) => codeOf(error) !== "VIEWSET_INVALID",
        });
      health.settle("viewset_damaged", domain);
      return isWhole;
    } catch (error) {
      if (!this.#stop.aborted)
        log.error({ domain, error: messageOf(error) }, "a file in force cannot be fetched again");
      return false;
    } finally {
      this.#repairs.delete(`${domain} ${manifest}`); // Nothing is noted between its last look at the files and this.
    }
  }
}

function holds({ hosts }: ServedDomain, sha256: Sha256): boolean {
  const tables = hosts.flatMap(({ views }) => (views.kind === "manifest" ? [views.table] : []));
  for (const buffer of new Set(tables)) {
    const table = new ManifestTable(buffer);
    for (let i = 0; i < table.count; i++) if (table.at(i)?.sha256 === sha256) return true;
  }
  return false;
}
