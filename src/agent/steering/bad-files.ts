// Files that a worker could not read as the manifest has them: each version in force that has the file is
// repaired. A version on trial is left to its trial, which finds out which of its files this disk damaged.

import { sleep } from "../../base/wait.ts";
import { parseSha256, type Sha256 } from "../../core/ids.ts";
import { ManifestTable } from "../../core/serving/manifest-table.ts";
import type { ServedDomain } from "../../core/serving/serving-state.ts";
import type { BadBlob } from "../accelerator/pool/worker-messages.ts";
import type { Repairs } from "./repairs.ts";
import type { Serving } from "./serving.ts";
import type { Trials } from "./trials.ts";

export type BadFilesPorts = {
  readonly serving: Pick<Serving, "state">;
  readonly trials: Pick<Trials, "until">;
  readonly repairs: Pick<Repairs, "mend">;
  readonly stop: AbortSignal;
  /** Replaced by tests. */
  readonly wait?: typeof sleep;
};

/**
 * The time after a repair during which the same file is not looked into again; on a failing disk each request
 * would cause a repair.
 */
const restMs = 30_000;

/** Dispose Repairs before this one, for its disposal waits for the repairs that it asked for. */
export class BadFiles implements AsyncDisposable {
  readonly #ports: BadFilesPorts;
  readonly #own = new AbortController();
  readonly #stop: AbortSignal;
  /** Files that are being looked into, or were lately. */
  readonly #noted = new Map<Sha256, Promise<void>>();

  constructor(ports: BadFilesPorts) {
    this.#ports = ports;
    this.#stop = AbortSignal.any([ports.stop, this.#own.signal]);
  }

  /** Notes that a worker could not read a file as the manifest has it. Returns at once; never throws. */
  note({ sha256, reason }: BadBlob): void {
    if (this.#noted.has(sha256) || this.#stop.aborted) return;
    const run = this.#run(sha256, reason).finally(() => this.#noted.delete(sha256));
    this.#noted.set(sha256, run);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#own.abort();
    await Promise.all(this.#noted.values());
  }

  async #run(sha256: Sha256, reason: string): Promise<void> {
    const { serving, trials, repairs, wait = sleep } = this.#ports;
    const lacking = serving.state.domains.filter(
      (domain) => holds(domain, sha256) && trials.until(domain.name) === undefined,
    );
    await Promise.all(
      lacking.map(async ({ name, manifest: text }) => {
        const manifest = parseSha256(text);
        if (manifest !== undefined) await repairs.mend(name, manifest, [sha256], reason);
      }),
    );
    await wait(restMs, this.#stop);
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
