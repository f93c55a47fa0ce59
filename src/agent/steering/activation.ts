// Which version of a domain is in force, and how that changes: by central's wish, by an operator, by a trial
// that failed.
//
// Each change is: fetched and validated → staged in every worker → probed there → committed with the book of
// releases → flipped. A version that proves bad is quarantined with the reason; the one before goes on
// serving. Central is told what becomes of its wish: by the receipt of its entry, and if that changes later
// by a correction in the same transaction.

import { isDeepStrictEqual } from "node:util";
import type { Json } from "../../core/journal/canonical-json.ts";
import { AccelError, codeOf, messageOf } from "../../core/faults.ts";
import {
  findRelease,
  granted,
  inForceOf,
  prepared,
  refusedWish,
  wentBack,
  withdrawn,
  type EntryPlace,
  type Quarantined,
  type Release,
  type ReleaseBook,
  type Return,
  type ViewsetRef,
  type Wish,
} from "../../core/serving/release-list.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { JournalBody } from "../../wire/journal.ts";
import type { Correction, Documents } from "../link/agent-db.ts";
import { refused, type EntryOutcome } from "../link/entry-outcome.ts";
import type { Judged, Viewsets } from "../viewset/viewsets.ts";
import type { ReleaseBooks } from "./release-books.ts";
import type { ReleaseWatch } from "./release-watch.ts";
import { correctionsOf, overtaken, refusedWith, settledWish } from "./release-words.ts";
import type { Serving } from "./serving.ts";
import { inspectStaged, ProbeFailed } from "./staged-probes.ts";

export type ActivationPorts = {
  readonly serving: Serving;
  readonly documents: Documents;
  readonly viewsets: Pick<Viewsets, "prepare" | "dropDamaged" | "letGo">;
  readonly books: ReleaseBooks;
  readonly watch: ReleaseWatch;
  /** Setting `viewset.keep`. */
  readonly keep: number;
  readonly now: () => Date;
  /** Called when another version than before is in force by central's wish. Must not throw. */
  readonly onTrial: (domain: string, manifest: Sha256) => void;
};

/**
 * The faults of a version, or of what this host can take of it. They are told to central and not tried again
 * for the same entry.
 */
const refusals: readonly unknown[] = [
  "VIEWSET_INVALID",
  "VIEWSET_TOO_LARGE",
  "VIEWSET_PROBE_FAILED",
];

type Version = ViewsetRef & { readonly judged: Judged };

type Change = { readonly book: ReleaseBook; readonly corrections: readonly Correction[] };

/** `not-linked`: nothing was changed, for the domain is not linked, or no longer is. */
type ServeOutcome = "served" | "not-linked";

export class Activations {
  readonly #ports: ActivationPorts;

  constructor(ports: ActivationPorts) {
    this.#ports = ports;
  }

  /** Activates a version by central's entry; repeated, it does the same. Throws what may be tried again. */
  async activate(
    { domain, ...ref }: JournalBody<"viewset.activated">,
    entry: EntryPlace,
    signal: AbortSignal,
  ): Promise<EntryOutcome> {
    const { books } = this.#ports;
    if (this.#ports.serving.names(domain) === undefined) return notLinked(domain, "not");
    const wish: Wish = { ...ref, entry };
    const standing = settledWish(books.of(domain), wish, entry);
    if (standing?.phase === "refused") return this.#refuse(domain, wish, standing);
    const version = { ...wish, judged: howJudged(books.of(domain), wish) };
    try {
      const outcome = await this.#serve(domain, version, signal, (book) => {
        // An operator may have pinned or quarantined it meanwhile.
        if (settledWish(book, wish, entry)?.phase === "refused")
          throw new AccelError("CONFLICT", "it was pinned or quarantined meanwhile");
        return { book: granted(book, wish, this.#limits()), corrections: [] };
      });
      if (outcome === "not-linked") return notLinked(domain, "no longer");
    } catch (error) {
      if (isRefusal(error) || codeOf(error) === "CONFLICT")
        return this.#failed(domain, wish, error);
      // An attempt that was broken off says nothing about the version.
      if (!signal.aborted) this.#remember(domain, wish, error);
      throw error;
    }
    if (standing === undefined) this.#ports.onTrial(domain, wish.manifest);
    return { phase: "applied", detail: { manifest: ref.manifest, viewset_id: ref.viewset_id } };
  }

  /**
   * Answers whether this host can serve a version, for the activation of a fleet, and holds it if it can: it is
   * fetched, staged in every worker and probed there, and in force stays what is. Throws what may be tried again.
   */
  async prepare(
    { domain, activation_id, hold_s, ...ref }: JournalBody<"viewset.prepare">,
    signal: AbortSignal,
  ): Promise<EntryOutcome> {
    const { books, now } = this.#ports;
    if (this.#ports.serving.names(domain) === undefined) return notLinked(domain, "not");
    const standing = settledWish(books.of(domain), ref, null);
    if (standing?.phase === "refused") return standing;
    const hold = (): void => {
      // The domain may have been unlinked meanwhile; what is written of it must not outlive it.
      if (this.#ports.serving.names(domain) === undefined) return;
      const until = new Date(now().getTime() + hold_s * 1_000).toISOString();
      books.commit(domain, prepared(books.of(domain), { ...ref, activation_id, until }));
    };
    try {
      if (standing !== undefined) hold();
      else await this.#mending(async () => this.#rehearse(domain, ref, signal, hold));
    } catch (error) {
      if (isRefusal(error)) return refusedWith(books.of(domain), messageOf(error), codeOf(error));
      throw error;
    }
    if (this.#ports.serving.names(domain) === undefined) return notLinked(domain, "no longer");
    return { phase: "applied", detail: { prepared: true, activation_id, manifest: ref.manifest } };
  }

  async #rehearse(
    domain: string,
    ref: ViewsetRef,
    signal: AbortSignal,
    hold: () => void,
  ): Promise<void> {
    const { serving, viewsets, books } = this.#ports;
    const names = serving.names(domain);
    if (names === undefined) return;
    const judged = howJudged(books.of(domain), ref);
    // `ready` holds the room of the version until the book says that it is held.
    using ready = await viewsets.prepare(ref.manifest, names, signal, judged);
    await serving.rehearse({ domain, ready }, async (next, ask) => {
      signal.throwIfAborted();
      await inspectStaged(domain, next, ask);
    });
    hold();
  }

  /** Lets go what was prepared for the activation of a fleet that was given up. */
  withdraw({ domain, activation_id }: JournalBody<"viewset.withdrawn">): EntryOutcome {
    this.#letGo(domain, activation_id);
    return { phase: "applied", detail: { activation_id } };
  }

  /** Lets go what was prepared and not decided on within its time. */
  letGoOverdue(): void {
    const { books, now } = this.#ports;
    for (const domain of books.domains()) {
      const held = books.of(domain).prepared;
      if (held !== null && Date.parse(held.until) <= now().getTime())
        this.#letGo(domain, held.activation_id);
    }
  }

  #letGo(domain: string, activationId: number): void {
    const { books, viewsets } = this.#ports;
    const book = books.of(domain);
    const next = withdrawn(book, activationId);
    if (next.prepared === book.prepared) return;
    books.commit(domain, next);
    viewsets.letGo();
  }

  /** Returns what has become of central's wish by now, for a caller that must report it anew. */
  outcomeOf(
    { domain, ...ref }: JournalBody<"viewset.activated">,
    entry: EntryPlace,
  ): EntryOutcome | undefined {
    return settledWish(this.#ports.books.of(domain), ref, entry);
  }

  /**
   * Forgets domains that are unlinked, or have no version any more. `more` goes into the same transaction.
   */
  forget(domains: readonly string[], more: Readonly<Record<string, Json>> = {}): void {
    const { books, watch } = this.#ports;
    books.forget(domains, more);
    for (const domain of domains) watch.forget(domain);
  }

  /**
   * Returns to the kept version that `said` names, for an operator; it stays until central has another wish.
   * Throws NOT_FOUND, CONFLICT if the host has changed since this was asked, and the fault for which the
   * version cannot be served.
   */
  async rollBack(domain: string, said: string | undefined, signal: AbortSignal): Promise<Release> {
    const asked = this.#ports.books.of(domain);
    const found = findRelease(asked, said);
    if (found.kind === "none") throw new AccelError("NOT_FOUND", found.reason);
    const back: Return = { to: found.release, by: "operator" };
    await this.#goBack(domain, back, (book) => overtaken(asked, book), signal);
    return found.release;
  }

  /**
   * Returns to another version, for a trial. Throws CONFLICT if the version that failed is no longer the one
   * in force.
   */
  async goBack(
    domain: string,
    back: Return & Required<Pick<Return, "bad">>,
    signal: AbortSignal,
  ): Promise<void> {
    const isOther = (book: ReleaseBook): boolean => inForceOf(book)?.manifest !== back.bad.manifest;
    const overtakes = (book: ReleaseBook): string | undefined =>
      isOther(book) ? "another version took its place meanwhile" : undefined;
    await this.#goBack(domain, back, overtakes, signal);
  }

  /**
   * `overtakes` is given the book as it is at the commit, and returns the reason why the decision no longer
   * applies, or undefined if it does.
   */
  async #goBack(
    domain: string,
    back: Return,
    overtakes: (book: ReleaseBook) => string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const version = { ...back.to, judged: "as taken" } as const;
    const outcome = await this.#serve(domain, version, signal, (book) => {
      const reason = overtakes(book);
      if (reason !== undefined) throw new AccelError("CONFLICT", reason);
      const next = wentBack(book, back, this.#limits());
      return { book: next, corrections: correctionsOf(next) };
    });
    if (outcome === "not-linked")
      throw new AccelError("NOT_FOUND", `${domain} is no longer linked`);
    this.#ports.watch.wentBack(domain, back.to, back.by);
  }

  /**
   * Tries again what central wants, for an operator, even if it is pinned or quarantined. Throws NOT_FOUND,
   * and the fault for which it is not served.
   */
  async retry(domain: string, signal: AbortSignal): Promise<ViewsetRef> {
    const { books, onTrial } = this.#ports;
    const { wish } = books.of(domain);
    if (wish === null)
      throw new AccelError("NOT_FOUND", `central wants no version of ${domain} on this host`);
    try {
      const outcome = await this.#serve(domain, { ...wish, judged: "anew" }, signal, (book) => {
        if (book.wish?.manifest !== wish.manifest)
          throw new AccelError("CONFLICT", "central wants another version meanwhile");
        const next = granted(book, book.wish, this.#limits());
        return { book: next, corrections: correctionsOf(next) };
      });
      if (outcome === "not-linked")
        throw new AccelError("NOT_FOUND", `${domain} is no longer linked`);
    } catch (error) {
      if (isRefusal(error)) {
        this.#failed(domain, wish, error);
        this.#ports.documents.put({}, correctionsOf(books.of(domain)));
      }
      throw error;
    }
    onTrial(domain, wish.manifest);
    return wish;
  }

  /** Tries once more, with files that this disk damaged fetched again: that is no fault of the version unless it happens twice. */
  async #mending<T>(attempt: () => Promise<T>, onDamage?: (reason: string) => void): Promise<T> {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof ProbeFailed) || error.damaged.length === 0) throw error;
      onDamage?.(error.message);
      await this.#ports.viewsets.dropDamaged(error.damaged);
      return attempt();
    }
  }

  /** Puts a version into force; until the commit `signal` ends it. */
  async #serve(
    domain: string,
    ref: Version,
    signal: AbortSignal,
    change: (book: ReleaseBook) => Change,
  ): Promise<ServeOutcome> {
    return this.#mending(
      async () => this.#tryToServe(domain, ref, signal, change),
      (reason) => this.#ports.watch.damaged(domain, ref, reason),
    );
  }

  async #tryToServe(
    domain: string,
    { manifest, judged }: Version,
    signal: AbortSignal,
    change: (book: ReleaseBook) => Change,
  ): Promise<ServeOutcome> {
    const { serving, viewsets, books, watch } = this.#ports;
    const names = serving.names(domain);
    if (names === undefined) return "not-linked";
    signal.throwIfAborted();
    // `ready` holds the room of the version until the book says that it is held.
    using ready = await viewsets.prepare(manifest, names, signal, judged);
    let isLinked = true;
    const commit = (): void => {
      signal.throwIfAborted();
      // If the domain was unlinked meanwhile, its documents must not outlive it.
      isLinked = serving.names(domain) !== undefined;
      if (!isLinked) return;
      const { book, corrections } = change(books.of(domain));
      books.commit(domain, book, corrections);
    };
    signal.throwIfAborted();
    await serving.publish({ viewset: { domain, ready } }, commit, async (next, ask) => {
      signal.throwIfAborted();
      await inspectStaged(domain, next, ask);
    });
    if (!isLinked) return "not-linked";
    watch.isWhole(domain);
    watch.judged(domain, ready);
    watch.tell(domain, books.of(domain));
    return "served";
  }

  #failed(domain: string, wish: Wish, error: unknown): EntryOutcome {
    const { books, now, watch } = this.#ports;
    const code = codeOf(error);
    const settled = settledWish(books.of(domain), wish, wish.entry);
    if (code === "CONFLICT" && settled !== undefined) return this.#refuse(domain, wish, settled);
    if (!isRefusal(error)) throw error;
    const reason = messageOf(error);
    const isBad = code === "VIEWSET_PROBE_FAILED" || isLasting(error);
    const { release } = books;
    const bad: Quarantined = { ...wish, reason, code, at: now().toISOString(), release };
    if (code === "VIEWSET_PROBE_FAILED") watch.probeFailed(domain, wish, reason, "staged");
    const outcome = refusedWith(books.of(domain), reason, code);
    return this.#refuse(
      domain,
      { ...wish, failed: { reason, code } },
      outcome,
      isBad ? bad : undefined,
    );
  }

  /**
   * Notes why the old version goes on serving, so that operators see it even after a restart. Never throws:
   * the caller has the fault itself to report.
   */
  #remember(domain: string, wish: Wish, error: unknown): void {
    const { serving, books, watch } = this.#ports;
    if (serving.names(domain) === undefined) return;
    const failed = { reason: messageOf(error), code: codeOf(error) };
    // It is tried again: what is prepared of it is still needed.
    const { prepared: held } = books.of(domain);
    const book = { ...refusedWish(books.of(domain), { ...wish, failed }), prepared: held };
    try {
      if (!isDeepStrictEqual(book, books.of(domain))) books.commit(domain, book);
    } catch (unwritable) {
      watch.unwritable(domain, unwritable);
    }
    watch.tell(domain, book);
  }

  #refuse(domain: string, wish: Wish, outcome: EntryOutcome, bad?: Quarantined): EntryOutcome {
    const { serving, books, watch } = this.#ports;
    if (serving.names(domain) === undefined) return notLinked(domain, "no longer");
    const book = refusedWish(books.of(domain), wish, bad);
    books.commit(domain, book);
    watch.tell(domain, book);
    return outcome;
  }

  #limits(): { readonly keep: number; readonly at: string } {
    const { keep, now } = this.#ports;
    return { keep, at: now().toISOString() };
  }
}

/**
 * The version in force, and one that is prepared, were judged when they were taken, by the rules of that day; an entry
 * that names one of them again finds it as it was taken.
 */
function howJudged(book: ReleaseBook, { manifest }: ViewsetRef): Judged {
  const taken = [inForceOf(book)?.manifest, book.prepared?.manifest];
  return taken.includes(manifest) ? "as taken" : "anew";
}

function isRefusal(error: unknown): boolean {
  return refusals.includes(codeOf(error));
}

function notLinked(domain: string, how: "not" | "no longer"): EntryOutcome {
  return refused(`${domain} is ${how} linked to this deployment site`);
}

/** Whether the version is invalid at any other time or place too. */
function isLasting(error: unknown): boolean {
  return error instanceof Error && "isLasting" in error && error.isLasting === true;
}
