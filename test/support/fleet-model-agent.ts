// An instance of the model. What it remembers is the real book of releases; what is durable outlives a kill, whatever else it had begun does not.

import {
  emptyBook,
  granted,
  inForceOf,
  prepared,
  refusedWish,
  standingOf,
  wentBack,
  withdrawn,
  type ReleaseBook,
} from "../../src/core/serving/release-list.ts";
import {
  manifestOf,
  versionOf,
  type ModelCentral,
  type ModelEntry,
  type ModelReceipt,
  type Place,
  type PlantedFault,
} from "./fleet-model-words.ts";

/** What an instance cannot do. */
export type Weakness = {
  /** It does not know how to prepare. */
  readonly isOld: boolean;
  /** Versions that it finds bad when it is asked, when it activates them, and while they are on trial. */
  readonly refuses: ReadonlySet<number>;
  readonly cannotFollow: ReadonlySet<number>;
  readonly failsTrial: ReadonlySet<number>;
};

const holdMs = 360_000;
const keep = 3;

export class ModelAgent {
  readonly place: Place;
  readonly weakness: Weakness;
  isUp = true;
  isConnected = false;
  /** Whether the state of this host is lost: its next contact takes a snapshot. */
  needsSnapshot = true;
  /** A snapshot stood for entries that it never read. */
  hasSkipped = false;
  book: ReleaseBook = emptyBook;
  readonly #central: ModelCentral;
  readonly #fault: PlantedFault | undefined;
  readonly #nowMs: () => number;
  #cursor = 0;
  #outbox: readonly ModelReceipt[] = [];
  #corrections = 0;

  constructor(
    place: Place,
    weakness: Weakness,
    central: ModelCentral,
    nowMs: () => number,
    fault?: PlantedFault,
  ) {
    this.place = place;
    this.weakness = weakness;
    this.#central = central;
    this.#nowMs = nowMs;
    this.#fault = fault;
  }

  get inForce(): number | null {
    const release = inForceOf(this.book);
    return release === undefined ? null : versionOf(release.manifest);
  }

  /** Whether it keeps what it promised for a version. */
  holds(version: number): boolean {
    return this.inForce === version || this.book.prepared?.manifest === manifestOf(version);
  }

  kill(): void {
    this.isUp = false;
    this.isConnected = false;
  }

  restart(): void {
    this.isUp = true;
    if (this.#fault === "forgets what it holds at a restart")
      this.book = { ...this.book, prepared: null };
  }

  async connect(): Promise<void> {
    this.isConnected = true;
    await this.#central.greeted(this.place);
    if (this.needsSnapshot) await this.#takeSnapshot();
  }

  async send(): Promise<void> {
    const sent = this.#outbox;
    await this.#central.received(this.place, sent);
    this.#outbox = this.#outbox.filter((receipt) => !sent.includes(receipt));
  }

  /** Takes the next entry; false if there is none. `dies`: it is killed when the effect is durable and its receipt is not. */
  async deliver(dies: boolean): Promise<boolean> {
    const journal = await this.#central.journal(this.place.site);
    const entry = journal[this.#cursor];
    if (entry === undefined) return false;
    const later = journal.slice(this.#cursor + 1);
    const receipt = this.#apply(entry, later);
    if (dies) {
      this.kill();
      return true;
    }
    this.#cursor++;
    this.#outbox = [...this.#outbox, receipt];
    return true;
  }

  /** Its trial ends; central is told if it fails. */
  endTrial(): void {
    const version = this.inForce;
    const entry = this.book.wish?.entry ?? null;
    if (version === null || entry === null || !this.weakness.failsTrial.has(version)) return;
    if (this.book.wish?.manifest !== manifestOf(version)) return;
    const before = this.book.releases.findLast(
      ({ manifest }) => manifest !== manifestOf(version) && !this.#isBad(manifest),
    );
    const bad = {
      ...refOf(version),
      reason: "EIO",
      code: "VIEWSET_PROBE_FAILED",
      at: this.#at(),
      entry,
    } as const;
    if (before !== undefined)
      this.book = wentBack(this.book, { to: before, by: "trial", bad }, { keep, at: this.#at() });
    const detail = { reason: "EIO", code: "VIEWSET_PROBE_FAILED", correction: ++this.#corrections };
    this.#outbox = [...this.#outbox, { seq: entry.seq, phase: "failed", detail }];
  }

  expire(): void {
    const held = this.book.prepared;
    if (held !== null && Date.parse(held.until) <= this.#nowMs())
      this.book = withdrawn(this.book, held.activation_id);
  }

  #apply(entry: ModelEntry, later: readonly ModelEntry[]): ModelReceipt {
    const { seq, kind, version, activationId } = entry;
    if (kind === "viewset.withdrawn") {
      this.book = withdrawn(this.book, activationId);
      return { seq, phase: "applied", detail: {} };
    }
    if (kind === "viewset.prepare") {
      if (this.weakness.isOld) return refusedAt(seq, "this agent does not know it");
      if (later.length > 0) return { seq, phase: "failed", detail: { reason: "superseded" } };
      if (this.weakness.refuses.has(version) || this.#isBad(manifestOf(version)))
        return refusedAt(seq, "bad");
      const until = new Date(this.#nowMs() + holdMs).toISOString();
      if (this.#fault !== "votes before it holds")
        this.book = prepared(this.book, { ...refOf(version), activation_id: activationId, until });
      if (this.#fault === "serves what it prepared") this.#grant(version, seq);
      return { seq, phase: "applied", detail: { prepared: true, activation_id: activationId } };
    }
    return this.#activate(version, seq);
  }

  #activate(version: number, seq: number): ModelReceipt {
    const manifest = manifestOf(version);
    const wish = { ...refOf(version), entry: { epoch: "e", seq } };
    const standing = standingOf(this.book, manifest);
    if (standing.kind === "in force") {
      this.#grant(version, seq);
      return { seq, phase: "applied", detail: {} };
    }
    if (standing.kind === "behind" && !this.weakness.cannotFollow.has(version)) {
      this.#grant(version, seq);
      return { seq, phase: "applied", detail: {} };
    }
    this.book = refusedWish(this.book, wish);
    return refusedAt(seq, standing.kind);
  }

  #grant(version: number, seq: number): void {
    const wish = { ...refOf(version), entry: { epoch: "e", seq } };
    this.book = granted(this.book, wish, { keep, at: this.#at() });
  }

  /** The state as it is now, in place of the entries. */
  async #takeSnapshot(): Promise<void> {
    const journal = await this.#central.journal(this.place.site);
    const active = journal.findLast(({ kind }) => kind === "viewset.activated");
    if (this.#cursor < journal.length) this.hasSkipped = true;
    this.#cursor = journal.length;
    this.needsSnapshot = false;
    this.#outbox = [];
    const own = active === undefined ? [] : [this.#activate(active.version, active.seq)];
    const seq = journal.at(-1)?.seq ?? 0;
    const covered = { seq, phase: "applied", detail: { snapshot: true } } as const;
    this.#outbox = [...own.filter(({ seq }) => seq !== covered.seq), covered];
    const last = own.find(({ seq }) => seq === covered.seq);
    if (last !== undefined)
      this.#outbox = [{ ...last, detail: { ...last.detail, snapshot: true } }];
  }

  #isBad(manifest: string): boolean {
    return this.book.quarantined.some((bad) => bad.manifest === manifest);
  }

  #at(): string {
    return new Date(this.#nowMs()).toISOString();
  }
}

function refusedAt(seq: number, reason: string): ModelReceipt {
  return { seq, phase: "refused", detail: { reason } };
}

function refOf(version: number) {
  return { manifest: manifestOf(version), viewset_id: version, viewset_name: `v${version}` };
}
