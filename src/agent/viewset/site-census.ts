// Counts what lies in a site's directory now and then, so that operators learn of links that lead out and of
// names that no viewset can hold when they appear, not at the next import. Nothing that is served depends on
// it.

import { stat } from "node:fs/promises";
import { Root } from "../../base/below-root.ts";
import type { Health } from "../../base/health.ts";
import type { Log } from "../../base/log.ts";
import { createMetrics, type Metrics, type Registry } from "../../base/metrics.ts";
import { messageOf } from "../../core/faults.ts";
import type { Slots } from "./parallel.ts";
import { walkSite, type SiteLocation } from "./site-walk.ts";

export const censusMetrics = {
  accel_agent_site_files: {
    kind: "gauge",
    help: "Files in the views directories of this host (setting sites), by domain, when they were last counted.",
    labels: ["domain"],
  },
  accel_agent_site_bytes: {
    kind: "gauge",
    help: "Their bytes.",
    labels: ["domain"],
  },
} as const;

export type CensusMetrics = Metrics<typeof censusMetrics>;
export const createCensusMetrics = (registry: Registry): CensusMetrics =>
  createMetrics(censusMetrics, registry);

export type CensusOptions = {
  readonly metrics: CensusMetrics;
  readonly health: Health;
  readonly log: Log;
  /** The slots of all sites together. */
  readonly slots: Slots;
  readonly nowMs: () => number;
  readonly stop: AbortSignal;
};

/** The least time between two counts of one site, however often it changes. */
const gapMs = 60_000;
/**
 * The largest share of the time that counting one site may take: ten thousand files take a tenth of a second,
 * two million half a minute.
 */
const shareMax = 1 / 50;
const namesMax = 5;

export class SiteCensus implements AsyncDisposable {
  readonly #location: SiteLocation;
  readonly #options: CensusOptions;
  #restedFromMs = -Infinity;
  #counting: Promise<void> | undefined;
  #isWanted = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(location: SiteLocation, options: CensusOptions) {
    this.#location = location;
    this.#options = options;
  }

  /** Notes that something changed: the site is counted when it is due. */
  note(): void {
    if (this.#options.stop.aborted) return;
    if (this.#counting !== undefined) this.#isWanted = true;
    else this.#timer ??= setTimeout(() => void this.count(), this.#dueInMs());
  }

  /** Counts the files. Never rejects. */
  async count(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#counting ??= this.#count().finally(() => {
      this.#counting = undefined;
      if (this.#isWanted) this.note();
      this.#isWanted = false;
    });
    return this.#counting;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    await this.#counting;
  }

  #dueInMs(): number {
    return Math.max(0, this.#restedFromMs - this.#options.nowMs());
  }

  async #count(): Promise<void> {
    const { slots, stop, nowMs, log } = this.#options;
    const { domain } = this.#location;
    try {
      await slots.run(async () => {
        const began = nowMs();
        await this.#survey();
        const tookMs = nowMs() - began;
        this.#restedFromMs = nowMs() + Math.max(gapMs, tookMs / shareMax);
      }, stop);
    } catch (error) {
      if (!stop.aborted) log.warn({ domain, err: error }, "counting the site on this host");
    }
  }

  async #survey(): Promise<void> {
    const { metrics, stop } = this.#options;
    const {
      domain,
      views_dir: viewsDir,
      devlove_file: devloveFile,
      paths_differ_in_case: pathsDifferInCase = false,
    } = this.#location;
    let files = 0;
    let bytes = 0;
    try {
      using root = await Root.open(viewsDir);
      const except = await stat(devloveFile, { bigint: true }).catch(() => undefined);
      const onFile = ({ size }: { readonly size: number }): void => {
        files++;
        bytes += size;
      };
      const { leftOut } = await walkSite({
        root,
        viewsDir,
        except,
        pathsDifferInCase,
        signal: stop,
        onFile,
      });
      this.#judge(undefined, leftOut);
    } catch (error) {
      stop.throwIfAborted();
      this.#judge(messageOf(error), []);
    }
    metrics.accel_agent_site_files.set({ domain }, files);
    metrics.accel_agent_site_bytes.set({ domain }, bytes);
  }

  /** Shows what is odd about the site. LocalSites also tells of a views directory that does not exist. */
  #judge(refusal: string | undefined, leftOut: readonly string[]): void {
    const { health } = this.#options;
    const { domain } = this.#location;
    if (refusal !== undefined)
      health.raise(
        "local_site_odd",
        "warning",
        `The site of ${domain} on this host cannot be imported as it is: ${refusal}`,
        "What is named here is not served or cannot be part of a viewset: rename or remove it. Names that begin with a dot are ignored.",
        domain,
      );
    else if (leftOut.length > 0)
      health.raise(
        "local_site_odd",
        "info",
        `The site of ${domain} on this host has links that are not followed: ${named(leftOut)}`,
        "Links are followed within views_dir only: put what they lead to there, or remove them.",
        domain,
      );
    else health.settle("local_site_odd", domain);
  }
}

function named(names: readonly string[]): string {
  const more = names.length > namesMax ? `, and ${names.length - namesMax} more` : "";
  return names.slice(0, namesMax).join(", ") + more;
}
