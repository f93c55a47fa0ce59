// What steering needs from the agent's other parts. Each port is small; the composition root passes the objects in.

import type { Json } from "../../core/journal/canonical-json.ts";
import type { CompiledSet, LocalSite, ReadyViewset } from "../../core/serving/compose-state.ts";
import type {
  FoundCertificates,
  LockedCertificates,
  ReadyCertificates,
  StoredCertificates,
} from "../../core/serving/found-certificates.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { Probe, ProbeAnswer } from "../../core/serving/plan-probes.ts";
import type { ServingState } from "../../core/serving/serving-state.ts";
import type { SetElement } from "../../core/addresses/set-digest.ts";
import type { BotSet, JournalBody } from "../../wire/journal.ts";
import type { BotSetState } from "../../wire/snapshot.ts";

/** agent.db's documents: each put is one durable transaction. */
export interface Documents {
  get(key: string): unknown;
  /** Null deletes. With what central is to be told of entries that were receipted before; of another epoch's it is told nothing. */
  put(changes: Readonly<Record<string, Json | null>>, corrections?: readonly Correction[]): void;
}

/** Of an entry: in place of the outcome that was told of it last. */
export type Correction = {
  readonly epoch: string;
  readonly seq: number;
  readonly phase: "applied" | "failed" | "refused";
  readonly detail: Readonly<Record<string, unknown>>;
};

export type DeltaOutcome = {
  readonly kind: "applied" | "known" | "mismatch" | "shrunk";
  readonly reason: string;
};
export type SetVersion = {
  readonly host: string;
  readonly kind: BotSet;
  readonly version: number;
  readonly count: number;
  readonly digest: string;
};

export type SetName = { readonly host: string; readonly kind: BotSet };

/** A whole set as it comes. */
export type SetPieces = AsyncIterable<readonly SetElement[]>;

export interface Sets {
  applyDelta(body: JournalBody<"bots.changed">): DeltaOutcome;
  /** Why the set may not take the place of the one that is held; undefined: it may. */
  refusal(want: SetName & { readonly count: number }, isMeant: boolean): string | undefined;
  /** Throws SET_MISMATCH when the elements are not what the version promises, and what `elements` throws; nothing has changed then. */
  replace(want: SetVersion, elements: SetPieces, signal: AbortSignal): Promise<void>;
  keepOnly(hosts: ReadonlySet<string>): void;
  list(): readonly SetVersion[];
}

/** Hears of every set that is not as central has it. Must not throw. */
export interface SetWatch {
  behind(set: SetName, why: "mismatch" | "shrunk" | "unavailable", reason: string): void;
  current(set: SetName): void;
  fetched(set: SetName): void;
  behindNow(): readonly SetName[];
  keepOnly(hosts: ReadonlySet<string>): void;
}

/** Sets as they were compiled, by `kind/host`; all in one of two arenas. */
export type BuiltTables = {
  readonly arena: 0 | 1;
  readonly sets: ReadonlyMap<string, CompiledSet>;
};

export interface Tables {
  /**
   * Compiles the sets, each as it is said to be or newer, into the arena that is not in force; it stays there where nothing is to be written. Nobody may
   * be reading the other arena. Throws SETS_NOT_COMPILED; what is in force is whole all the same.
   */
  build(sets: readonly SetVersion[], inForce: 0 | 1): Promise<BuiltTables>;
}

/** `anew`: by the rules of this release. `as taken`: by its shape alone; it is in force, or was. */
export type Judged = "anew" | "as taken";

/** Its room is taken until it is disposed: by then it is written down as held, or was given up. */
export type PreparedViewset = ReadyViewset & Disposable;

export interface Viewsets {
  /**
   * Fetches what is missing, verifies and validates. Throws VIEWSET_INVALID (with `isLasting: true` where no other time or place makes it valid) and
   * VIEWSET_TOO_LARGE with the reason; network faults are retryable.
   */
  prepare(
    manifest: Sha256,
    domain: SiteNames,
    signal: AbortSignal,
    judged?: Judged,
  ): Promise<PreparedViewset>;
  /** Of these files, those that cannot be read here or have other bytes than they should are removed: `prepare` fetches them again. */
  dropDamaged(files: Iterable<Sha256>): Promise<void>;
  /** Uploads the site as it lies on this host. Throws IMPORT_IMPOSSIBLE or VIEWSET_INVALID with the reason. */
  importSite(
    importId: string,
    domain: SiteNames,
    signal: AbortSignal,
  ): Promise<{ manifest: Sha256; files: number; bytes: number }>;
}

/** A domain by name, with its sub-domains' names. */
export type SiteNames = { readonly name: string; readonly subDomains: readonly string[] };

export interface LocalSites {
  get(domain: string): LocalSite | undefined;
  /** Which hosts a devlove may name depends on the sub-domains: asked again when these changed. */
  look(): Promise<void>;
}

export type ClearGone = {
  readonly removed: number;
  /** Responses that were being fetched, and were refused when they came; it grows as long as fetches are under way. */
  readonly blockedInFlight: number;
  readonly goneMs: number;
  /** Asked again, nothing that matches is servable. */
  readonly verified: boolean | null;
  /** How many were all the same; they are dropped. */
  readonly left: number;
};

export interface CacheIndex {
  /** `applied`: invisible and durable. `gone`: deleted. Idempotent by clear id. Rejects with PATTERN_INVALID before anything changed. */
  clear(request: {
    clearId: string;
    domain: string;
    host: string | null;
    patterns: readonly string[];
    seq: number;
  }): {
    readonly applied: Promise<{
      readonly clearNo: number;
      readonly matched: number;
      readonly widened: boolean;
      readonly invisibleMs: number;
    }>;
    readonly gone: Promise<ClearGone>;
    /** Told when more is known since `gone`, with what that says by now. */
    readonly onLate: (listener: (gone: ClearGone) => void) => void;
  };
  /** Everything cached of the main domain, or of one host: unservable durably when it resolves. */
  dropDomain(domain: string): Promise<unknown>;
  dropHost(host: string): Promise<unknown>;
}

/** What a worker would answer from the state that is staged; undefined: there is no worker to ask. Throws VIEWSET_PROBE_LATE. */
export type AskProbes = (probes: readonly Probe[]) => Promise<readonly ProbeAnswer[] | undefined>;

export interface WorkerPool {
  /**
   * Builds the next state, stages it in every worker, has it inspected, commits, flips. One at a time; when `inspect` or `commit` throws nothing
   * flips.
   */
  publish(
    build: (version: number) => ServingState,
    commit?: () => void,
    inspect?: (ask: AskProbes) => Promise<void>,
  ): Promise<number>;
  /** By worker, of the state in force. Throws VIEWSET_PROBE_LATE. */
  probe(probes: readonly Probe[]): Promise<readonly (readonly ProbeAnswer[])[]>;
  /** Resolves when no thread reads an older state any more than the one that is in force now. */
  left(): Promise<void>;
}

export interface Central {
  botSet(host: string, kind: BotSet, signal: AbortSignal): Promise<BotSetState>;
  /** Nothing of it before all of it was verified. Throws what is tried again, and where it broke off it goes on. */
  botSetContent(blob: Sha256, signal: AbortSignal): SetPieces;
}

/** Keys and certificates on this host. */
export interface Vault {
  /** Every site has a key: here are none. */
  readonly lacksKeys: boolean;
  /** Names of those that do not open with this host's secret16. */
  lockedKeys(): readonly string[];
  /** Central's keys are durable when it resolves, with the names of those that do not open. */
  takeKeys(body: JournalBody<"key.changed">): Promise<readonly string[]>;
  /** Fetched, opened, checked, durable. Throws NOT_FOUND where central has others by now, and network faults, which are retryable. */
  prepare(
    body: JournalBody<"certificate.changed">,
    signal: AbortSignal,
  ): Promise<FoundCertificates>;
  /** What was prepared before, as it lies here. */
  restore(stored: StoredCertificates): Promise<FoundCertificates>;
  /** The first is in force, the second waits for another secret16; everything else goes. */
  use(ready: ReadyCertificates | undefined, locked?: LockedCertificates): Promise<void>;
  /** Nothing of it stays on this host. */
  forget(): Promise<void>;
}
