// Activations in a row between two versions of one site while visitors read pairs of files: how long each took from the customer's call to the receipt,
// what visitors were answered, and what memory and disk did meanwhile.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { ReleaseRig } from "./release-rig.ts";
import { VersionOrder, visitPairs, type VisitedSite } from "./release-visitors.ts";
import { VersionedSite, type Span } from "./versioned-site.ts";

export type LoadSample = {
  readonly activation: number;
  readonly agentMb: number;
  readonly centralMb: number;
  readonly diskMb: number;
  readonly files: number;
};
export type LoadRun = {
  readonly counts: VersionOrder["counts"];
  /** Of each activation. */
  readonly tookMs: readonly number[];
  readonly samples: readonly LoadSample[];
};
export type LoadOptions = {
  readonly files: number;
  readonly activations: number;
  readonly visitors: number;
  /** Between two samples. */
  readonly sampleEach: number;
  readonly onSample?: (sample: LoadSample, counts: VersionOrder["counts"]) => void;
};

const sitesVersions = 2;
/** Both versions are on the host. */
const warmUp = 2;

/** The agent of `rig` runs; its site is `site`, of which nothing is published yet. */
export async function runLoad(rig: ReleaseRig, options: LoadOptions): Promise<LoadRun> {
  const site = new AlternatingSite(options.files);
  const ids: number[] = [];
  for (let version = 1; version <= sitesVersions; version++)
    ids.push(await rig.publish(`v${version}`, site.versions.change(version)));
  const order = new VersionOrder();
  const activate = async (): Promise<number> => {
    const id = ids[site.asked++ % sitesVersions] ?? 0;
    const began = performance.now();
    await rig.activate(id);
    await rig.applied(id);
    order.promised(site.asked);
    return performance.now() - began;
  };
  for (let no = 0; no < warmUp; no++) await activate();
  const done = new AbortController();
  const visiting = visitPairs(options.visitors, {
    port: rig.edge.ports.visitors,
    site,
    order,
    signal: done.signal,
  });
  const tookMs: number[] = [];
  const samples: LoadSample[] = [];
  try {
    while (tookMs.length < options.activations) {
      tookMs.push(await activate());
      if (tookMs.length % options.sampleEach > 0) continue;
      const sample = sampleOf(rig, tookMs.length);
      samples.push(sample);
      options.onSample?.(sample, order.counts);
    }
  } finally {
    done.abort();
    await visiting;
  }
  return { counts: order.counts, tookMs, samples };
}

/** Versions are counted by activations: the first has the first content, the second the second, the third the first again. */
class AlternatingSite implements VisitedSite {
  readonly versions: VersionedSite;
  /** Activations that the customer has asked for. */
  asked = 0;

  constructor(files: number) {
    this.versions = new VersionedSite(files);
  }

  get files(): number {
    return this.versions.files;
  }

  path(no: number): string {
    return this.versions.path(no);
  }

  middle(no: number): number {
    return this.versions.middle(no);
  }

  /** The other content than the one of `begun` is newer only where a newer one was asked for. */
  spanOf(no: number, body: string, at: number, begun: number): Span | undefined {
    const content = this.versions.spanOf(no, body, at)?.from;
    if (content === undefined || content > sitesVersions) return undefined;
    const isSame = (begun - 1) % sitesVersions === content - 1;
    const version = isSame ? begun : begun + 1;
    const activation = version > this.asked ? begun - 1 : version;
    return { from: activation, to: activation };
  }
}

function sampleOf({ edge }: ReleaseRig, activation: number): LoadSample {
  const state = join(edge.dir, "agent");
  let bytes = 0;
  let files = 0;
  for (const path of readdirSync(state, { recursive: true, encoding: "utf8" })) {
    // Deleted meanwhile: it is gone.
    const stats = statSync(join(state, path), { throwIfNoEntry: false });
    if (stats?.isFile() !== true) continue;
    bytes += stats.size;
    files++;
  }
  return {
    activation,
    agentMb: residentMb(edge.agent.pid),
    centralMb: residentMb(edge.central.pid),
    diskMb: bytes / 2 ** 20,
    files,
  };
}

function residentMb(pid: number): number {
  const [, kb = "0"] =
    /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kb) / 1_024;
}

/** By which a value grows from one activation to the next: the line of least squares. */
export function slopeOf(
  samples: readonly LoadSample[],
  value: (sample: LoadSample) => number,
): number {
  const mean = (of: (sample: LoadSample) => number): number =>
    samples.reduce((sum, sample) => sum + of(sample), 0) / samples.length;
  const [x, y] = [mean(({ activation }) => activation), mean(value)];
  return (
    mean((sample) => (sample.activation - x) * (value(sample) - y)) /
    mean(({ activation }) => (activation - x) ** 2)
  );
}
