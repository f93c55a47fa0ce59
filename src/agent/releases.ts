// Versions of domains on this host: which is in force, how that changes, what is on trial, and what operators are told of it.

import { AccelError } from "../core/faults.ts";
import { inForceOf, standingOf, type ReleaseBook, type ViewsetRef } from "../core/release-list.ts";
import type { WorkerPool } from "./accelerator/workers.ts";
import type { Ground } from "./ground.ts";
import { Activations } from "./steering/activation.ts";
import type { ReleaseBooks } from "./steering/release-books.ts";
import { ReleaseWatch } from "./steering/release-watch.ts";
import type { Serving } from "./steering/serving.ts";
import { Trials } from "./steering/trials.ts";
import type { Viewsets } from "./viewset/viewsets.ts";

export type Releases = {
  readonly books: ReleaseBooks;
  readonly activations: Activations;
  readonly trials: Trials;
  readonly watch: ReleaseWatch;
};

type ReleaseParts = {
  readonly books: ReleaseBooks;
  readonly viewsets: Viewsets;
  readonly pool: WorkerPool;
  readonly serving: Serving;
  /** Something was written that central is to be told. */
  readonly onCorrected: () => void;
};

/** Trials that the end of the process cut short go on: the workers must have been started. */
export function openReleases(
  stack: AsyncDisposableStack,
  { options, common, db: documents }: Ground,
  { books, viewsets, pool, serving, onCorrected }: ReleaseParts,
): Releases {
  const { settings, now, log, stop } = options;
  const watch = new ReleaseWatch(common);
  const late: { trials?: Trials } = {};
  const shared = { serving, documents, books, watch, now, onCorrected };
  const activations = new Activations({
    ...shared,
    viewsets,
    keep: settings["viewset.keep"],
    onTrial: (domain, manifest) => late.trials?.begin(domain, manifest),
  });
  const trialMs = settings["viewset.trial_s"] * 1_000;
  const trials = stack.use(new Trials({ ...shared, activations, pool, trialMs, log, stop }));
  late.trials = trials;
  for (const domain of books.domains()) watch.tell(domain, books.of(domain));
  trials.resume();
  return { books, activations, trials, watch };
}

/** For `viewset list`. Throws NOT_FOUND for a domain that is not linked. */
export function listReleases(
  { books, trials }: Releases,
  linked: readonly string[],
  domain: string | undefined,
): readonly unknown[] {
  if (domain !== undefined && !linked.includes(domain))
    throw new AccelError("NOT_FOUND", `this agent serves no domain ${JSON.stringify(domain)}`);
  return (domain === undefined ? linked : [domain]).map((name) => ({
    domain: name,
    ...describeBook(books.of(name)),
    on_trial_until: trials.until(name) ?? null,
  }));
}

function describeBook(book: ReleaseBook): object {
  const { releases, quarantined, pin, wish } = book;
  const inForce = inForceOf(book);
  return {
    in_force: inForce === undefined ? null : { ...ref(inForce), since: inForce.activated_at },
    wanted: wish === null ? null : ref(wish),
    standing: wish === null ? null : standingOf(book, wish.manifest).kind,
    pinned:
      pin === null || pin.reason !== "operator" ? null : { ...ref(pin), since: pin.pinned_at },
    kept: releases.toReversed().map((release) => ({
      ...ref(release),
      activated_at: release.activated_at,
      outcome: release.outcome,
    })),
    quarantined: quarantined.toReversed().map(({ reason, code, at, ...bad }) => ({
      ...ref(bad),
      at,
      code,
      reason,
    })),
  };
}

function ref({ viewset_name, viewset_id, manifest }: ViewsetRef): ViewsetRef {
  return { viewset_name, viewset_id, manifest };
}
