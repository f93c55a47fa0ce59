// Opens what handles versions of domains on this host: which one is in force, how that changes, what is on
// trial, and what operators are told.

import { Topic } from "../base/topic.ts";
import { repeating } from "../base/wait.ts";
import type { Sha256 } from "../core/ids.ts";
import {
  inForceOf,
  standingOf,
  type Standing,
  type ViewsetRef,
} from "../core/serving/release-list.ts";
import type { ControlPorts } from "./admin/control-routes.ts";
import type { VersionFacts } from "./admin/status.ts";
import type { BadBlob } from "./accelerator/pool/worker-messages.ts";
import type { WorkerPool } from "./accelerator/pool/workers.ts";
import type { Ground } from "./ground.ts";
import type { Scrub } from "./scrub/scrub.ts";
import { Activations } from "./steering/activation.ts";
import { BadFiles } from "./steering/bad-files.ts";
import type { ReleaseBooks } from "./steering/release-books.ts";
import type { ReleaseWatch } from "./steering/release-watch.ts";
import { Repairs } from "./steering/repairs.ts";
import type { Serving } from "./steering/serving.ts";
import { Trials } from "./steering/trials.ts";
import type { Viewsets } from "./viewset/viewsets.ts";

/** How often versions are looked for that nobody decided on in time. */
const letGoEveryMs = 10_000;

export type Releases = {
  readonly books: ReleaseBooks;
  readonly activations: Activations;
  readonly trials: Trials;
  readonly watch: ReleaseWatch;
  readonly repairs: Repairs;
};

type ReleaseParts = {
  readonly books: ReleaseBooks;
  readonly viewsets: Viewsets;
  readonly pool: WorkerPool;
  readonly serving: Serving;
  readonly watch: ReleaseWatch;
  /** Domains whose version in force lacks something on this disk. */
  readonly torn: readonly string[];
  readonly badBlobs: Topic<BadBlob>;
};

/**
 * Opens the parts and resumes trials that the end of the process cut short; the workers must have been
 * started.
 */
export function openReleases(
  stack: AsyncDisposableStack,
  { options, common, db: documents }: Ground,
  { books, viewsets, pool, serving, watch, torn, badBlobs }: ReleaseParts,
): Releases {
  const { settings, now, log, stop } = options;
  const due = new Topic<{ readonly domain: string; readonly manifest: Sha256 }>();
  const shared = { serving, documents, books, watch, now };
  const activations = new Activations({
    ...shared,
    viewsets,
    keep: settings["viewset.keep"],
    onTrial: (domain, manifest) => due.tell({ domain, manifest }),
  });
  const repairs = new Repairs({ serving, viewsets, random: options.random, ...common });
  const trialMs = settings["viewset.trial"];
  const trials = stack.use(
    new Trials({ ...shared, activations, pool, repairs, trialMs, log, stop }),
  );
  const onError = (error: unknown): void =>
    log.error({ err: error }, "versions prepared for a fleet are held although their time is over");
  stack.use(repeating(letGoEveryMs, () => activations.letGoOverdue(), { stop, onError }));
  stack.use(due.follow(({ domain, manifest }) => trials.begin(domain, manifest)));
  const badFiles = stack.use(new BadFiles({ serving, trials, repairs, stop }));
  stack.use(badBlobs.follow((blob) => badFiles.note(blob)));
  stack.use(repairs); // Trials and bad files wait for repairs, so these end first.
  for (const domain of books.domains()) watch.tell(domain, books.of(domain));
  trials.resume(torn);
  return { books, activations, trials, watch, repairs };
}

type ReleaseFacts = {
  readonly domain: string;
  readonly in_force: (ViewsetRef & { readonly since: string }) | null;
  readonly wanted: ViewsetRef | null;
  readonly standing: Standing["kind"] | null;
  /** The version that an operator pinned. */
  readonly pinned: (ViewsetRef & { readonly since: string }) | null;
  readonly on_trial_until: string | null;
  /** The version that is held for the decision of a fleet, and until when at the latest. */
  readonly prepared: (ViewsetRef & { readonly until: string }) | null;
  /** The kept versions, newest first, including the one in force. */
  readonly kept: readonly (ViewsetRef & {
    readonly activated_at: string;
    readonly outcome: string;
  })[];
  readonly quarantined: readonly (ViewsetRef & {
    readonly at: string;
    readonly code: string;
    readonly reason: string;
  })[];
};

/** The parts from which versions are described. */
type Described = Pick<Releases, "books"> & { readonly trials: Pick<Trials, "until"> };

/** Makes the operators' commands on versions. */
export function viewsetPorts(
  releases: Described & Pick<Releases, "activations">,
  serving: Pick<Serving, "state">,
  scrub: Pick<Scrub, "begin" | "facts">,
): Pick<ControlPorts, "viewsetList" | "viewsetRollback" | "viewsetRetry" | "viewsetCheck"> {
  const { activations } = releases;
  return {
    viewsetList: (asked) =>
      serving.state.domains
        .filter(({ name }) => asked === undefined || name === asked)
        .map(({ name }) => describeReleases(releases, name)),
    viewsetRollback: async ({ domain, version }, signal) => {
      await activations.rollBack(domain, version, signal);
      return describeReleases(releases, domain);
    },
    viewsetCheck: () => {
      scrub.begin();
      return scrub.facts();
    },
    viewsetRetry: async (domain, signal) => {
      await activations.retry(domain, signal);
      return describeReleases(releases, domain);
    },
  };
}

function describeReleases({ books, trials }: Described, domain: string): ReleaseFacts {
  const book = books.of(domain);
  const { releases, quarantined, pin, wish, prepared } = book;
  const inForce = inForceOf(book);
  const isPinned = pin !== null && pin.reason === "operator";
  return {
    domain,
    in_force: inForce === undefined ? null : { ...ref(inForce), since: inForce.activated_at },
    wanted: wish === null ? null : ref(wish),
    standing: wish === null ? null : standingOf(book, wish.manifest).kind,
    pinned: isPinned ? { ...ref(pin), since: pin.pinned_at } : null,
    on_trial_until: trials.until(domain) ?? null,
    prepared: prepared === null ? null : { ...ref(prepared), until: prepared.until },
    kept: releases
      .toReversed()
      .map((one) => ({ ...ref(one), activated_at: one.activated_at, outcome: one.outcome })),
    quarantined: quarantined
      .toReversed()
      .map((one) => ({ ...ref(one), at: one.at, code: one.code, reason: one.reason })),
  };
}

/** Describes a version for `status`; null stands for the site as it lies on this host, or for none. */
export function describeVersion(releases: Described, domain: string): VersionFacts | null {
  const { in_force: inForce, standing, on_trial_until } = describeReleases(releases, domain);
  if (inForce === null) return null;
  const { viewset_name, viewset_id, since } = inForce;
  return { viewset_name, viewset_id, since, standing: standing ?? "in force", on_trial_until };
}

function ref({ viewset_name, viewset_id, manifest }: ViewsetRef): ViewsetRef {
  return { viewset_name, viewset_id, manifest };
}
