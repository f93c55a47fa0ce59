// Repairs files of a version in force that this disk damaged: what is missing, or has another size or other
// bytes, is fetched again while the rest is served.

import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { retry } from "../../base/wait.ts";
import { codeOf, messageOf } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { Viewsets } from "../viewset/viewsets.ts";
import type { Serving } from "./serving.ts";

export type RepairPorts = {
  readonly serving: Pick<Serving, "state" | "names">;
  readonly viewsets: Pick<Viewsets, "prepare" | "dropDamaged">;
  readonly health: Health;
  readonly log: Log;
  readonly random: () => number;
  readonly stop: AbortSignal;
};

/**
 * `given-up`: another version took its place, central does not have the files any more, or this was stopped.
 */
export type Mended = "whole" | "given-up";

type Repair = { readonly files: Set<Sha256>; readonly done: Promise<Mended> };

export class Repairs implements AsyncDisposable {
  readonly #ports: RepairPorts;
  readonly #own = new AbortController();
  readonly #stop: AbortSignal;
  /** The repairs under way by domain and manifest; there is one of each at a time, whatever is missing. */
  readonly #repairs = new Map<string, Repair>();

  constructor(ports: RepairPorts) {
    this.#ports = ports;
    this.#stop = AbortSignal.any([ports.stop, this.#own.signal]);
  }

  /** Fetches the damaged ones of these files again, however long that takes. Never rejects. */
  async mend(
    domain: string,
    manifest: Sha256,
    damaged: readonly Sha256[],
    reason: string,
  ): Promise<Mended> {
    const key = `${domain} ${manifest}`;
    const known = this.#repairs.get(key);
    if (known !== undefined) {
      // The repair that is under way fetches whatever else is missing of the version.
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
    await Promise.all([...this.#repairs.values()].map(({ done }) => done));
  }

  /**
   * Repairs until the version is whole, another took its place, or the agent stops. Never rejects. Files
   * added to `files` meanwhile are looked into as well.
   */
  async #repair(
    domain: string,
    manifest: Sha256,
    files: Set<Sha256>,
    reason: string,
  ): Promise<Mended> {
    const { serving, viewsets, health, log, random } = this.#ports;
    const about = `a file of the version of ${domain} in force cannot be read: ${reason}`;
    const hint = "It is fetched again from central. If it happens again, check the disk.";
    health.raise("viewset_damaged", "error", about, hint, domain);
    log.error({ domain, manifest, reason }, "a file in force cannot be read; it is fetched again");
    let mended: Mended = "given-up";
    const fetchAgain = async (): Promise<void> => {
      const served = serving.state.domains.find(({ name }) => name === domain);
      const names = serving.names(domain);
      const missed = [...files];
      mended = "given-up";
      if (served?.manifest === manifest && names !== undefined) {
        await viewsets.dropDamaged(missed);
        using _ = await viewsets.prepare(manifest, names, this.#stop, "as taken");
        mended = "whole";
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
      return mended;
    } catch (error) {
      if (!this.#stop.aborted)
        log.error({ domain, error: messageOf(error) }, "a file in force cannot be fetched again");
      return "given-up";
    } finally {
      // No file can be added between the last look at `files` and this line.
      this.#repairs.delete(`${domain} ${manifest}`);
    }
  }
}
