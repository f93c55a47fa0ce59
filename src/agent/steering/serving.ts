// What is served now: this keeps the inputs of the composed state together and publishes a new state whenever
// one of them changes.

import {
  composeState,
  type ComposeInputs,
  type EffectivePolicy,
  type LinkedDomain,
  type ReadyViewset,
} from "../../core/serving/compose-state.ts";
import type { StoredCertificates } from "../../core/serving/found-certificates.ts";
import type {
  EntryPlace,
  Pin,
  PreparedVersion,
  Quarantined,
  Release,
  Wish,
} from "../../core/serving/release-list.ts";
import type { CertificateTableRef } from "../../core/serving/certificate-table.ts";
import { nothingServed, type ServingState } from "../../core/serving/serving-state.ts";
import type { JournalBody } from "../../wire/journal.ts";
import type { AskProbes } from "../accelerator/pool/worker-probes.ts";
import type { WorkerPool } from "../accelerator/pool/workers.ts";
import type { SetStore } from "../bots/sets/set-store.ts";
import type { TableClient } from "../bots/tables/table-client.ts";
import type { BuiltTables } from "../bots/tables/table-maker.ts";
import type { Documents } from "../link/agent-db.ts";
import type { SiteNames } from "../viewset/devlove-text.ts";
import type { LocalSites } from "../viewset/local-sites.ts";
import { Joined } from "../../base/mutex.ts";
import type { QueryRules } from "./query-rules.ts";

/**
 * The domains in force. They are ahead of the document while what was cached of an unlinked domain is being
 * dropped. None are known before there is a Serving.
 */
export class LinkedDomains {
  #all: readonly LinkedDomain[] = [];

  get all(): readonly LinkedDomain[] {
    return this.#all;
  }

  take(domains: readonly LinkedDomain[]): void {
    this.#all = domains;
  }

  /** Returns a domain's names; undefined if it is not linked to this deployment site, or no longer is. */
  names(domain: string): SiteNames | undefined {
    const linked = this.#all.find(({ name }) => name === domain);
    return linked === undefined
      ? undefined
      : { name: linked.name, subDomains: linked.sub_domains.map(({ name }) => name) };
  }
}

export type ServingPorts = {
  readonly linked: LinkedDomains;
  readonly documents: Documents;
  readonly sets: Pick<SetStore, "list">;
  readonly tables: Pick<TableClient, "build">;
  readonly locals: Pick<LocalSites, "get">;
  readonly pool: Pick<WorkerPool, "publish" | "rehearse" | "left">;
  readonly queryRules: Pick<QueryRules, "prepare" | "whileSame">;
  readonly now: () => Date;
  /** Called with each state that is in force from now on. Never throws. */
  readonly onServed?: (state: ServingState) => void;
  /** Called with each table of files to which no thread's state refers any more. Never throws. */
  readonly onTableLeft?: (table: SharedArrayBuffer) => void;
};

type Override = {
  readonly domains?: readonly LinkedDomain[];
  readonly policy?: JournalBody<"policy.changed">;
  readonly classes?: JournalBody<"policy.classes">;
  /** A viewset that comes into force; `ready` is null if the domain has none any more. */
  readonly viewset?: { readonly domain: string; readonly ready: ReadyViewset | null };
  readonly tables?: BuiltTables;
  /** The challenges of a domain that are open from now on. */
  readonly challenges?: JournalBody<"challenges.changed">;
  /** The certificates that come into force; null if there are none any more. */
  readonly certificates?: CertificateTableRef | null;
};

export class Serving {
  readonly #ports: ServingPorts;
  /** Prepared viewsets in force, by main domain. */
  readonly #ready = new Map<string, ReadyViewset>();
  /** Tables that are no longer in force; threads may still have states with them. */
  #replaced: SharedArrayBuffer[] = [];
  #state: ServingState = nothingServed;
  #tables: BuiltTables = { arena: 0, sets: new Map() };
  #certificates: CertificateTableRef | undefined;
  /** Whether a publish failed: nobody knows how far it came. */
  #hasFailed = false;
  readonly #setsChange = new Joined(async () => {
    const tables = await this.#build();
    if (this.#hasFailed || !isEqual(tables, this.#tables)) await this.publish({ tables });
  });

  constructor(ports: ServingPorts) {
    this.#ports = ports;
    ports.linked.take(this.domains());
  }

  /** The state that workers serve. */
  get state(): ServingState {
    return this.#state;
  }

  /**
   * Calls `give` with the state that clears are read by, which stays in force until it returns. Whatever it gives to the
   * index there comes before or behind a change of rules, never in between.
   */
  async giveClear<T>(give: (state: ServingState) => T): Promise<T> {
    return this.#ports.queryRules.whileSame(() => give(this.#state));
  }

  /** Returns the domains as last committed. */
  domains(): readonly LinkedDomain[] {
    return documentOf(this.#ports.documents, "domains")?.domains ?? [];
  }

  /** Returns a domain's names; undefined if it is not linked to this deployment site, or no longer is. */
  names(domain: string): SiteNames | undefined {
    return this.#ports.linked.names(domain);
  }

  /**
   * Restores a viewset that was committed before the start, which may lack some of its files; the next
   * publish makes it effective.
   */
  restore(domain: string, ready: ReadyViewset): void {
    this.#ready.set(domain, ready);
  }

  /** Restores the certificates that were in force before the start; the next publish makes them effective. */
  restoreCertificates(table: CertificateTableRef | undefined): void {
    this.#certificates = table;
  }

  /** Restores the sets as they were committed before the start; the next publish makes them effective. */
  async restoreSets(): Promise<void> {
    this.#tables = await this.#build();
  }

  /**
   * Resolves when every worker judges by the sets as they are committed now. Changes that come while one
   * waits are published together.
   */
  async publishSets(): Promise<void> {
    return this.#setsChange.run();
  }

  /**
   * Builds the tables in the arena that is not in force. It is free when every worker has left the states
   * that lay there.
   */
  async #build(): Promise<BuiltTables> {
    const { pool, sets, tables } = this.#ports;
    await pool.left();
    return tables.build(sets.list(), this.#tables.arena);
  }

  /**
   * Publishes a change; resolves when every worker serves it. `inspect` may ask what is staged; then `commit`
   * makes it durable before the flip; when one throws, nothing has changed. What is in force is noted with
   * the commit and not afterwards, for the next publish may compose before this one's caller continues.
   */
  async publish(
    override: Override = {},
    commit?: () => void,
    inspect?: (next: ServingState, ask: AskProbes) => Promise<void>,
  ): Promise<void> {
    let next = this.#state;
    let rulesEnd = (_isInForce: boolean): void => undefined;
    try {
      await this.#ports.pool.publish(
        (version) => {
          next = composeState(version, this.#inputs(override));
          return next;
        },
        () => {
          commit?.();
          this.#take(next, override);
          rulesEnd(true);
        },
        async (ask) => {
          await inspect?.(next, ask);
          rulesEnd = await this.#ports.queryRules.prepare(next);
        },
      );
      this.#hasFailed = false;
      this.#ports.onServed?.(next);
      this.#letGo();
    } catch (error) {
      rulesEnd(false);
      this.#hasFailed = true;
      throw error;
    }
  }

  /**
   * Stages a version in every worker and has it inspected there; in force stays what is. Throws what `inspect` throws.
   */
  async rehearse(
    viewset: { readonly domain: string; readonly ready: ReadyViewset },
    inspect: (next: ServingState, ask: AskProbes) => Promise<void>,
  ): Promise<void> {
    let next = this.#state;
    try {
      await this.#ports.pool.rehearse(
        (version) => {
          next = composeState(version, this.#inputs({ viewset }));
          return next;
        },
        async (ask) => inspect(next, ask),
      );
    } finally {
      // No thread reads a state that never comes into force.
      const { table } = viewset.ready;
      if (table !== null) this.#ports.onTableLeft?.(table);
    }
  }

  #take(state: ServingState, { domains, viewset, tables }: Override): void {
    this.#state = state;
    this.#certificates = state.certificates;
    this.#tables = tables ?? this.#tables;
    if (domains !== undefined) this.#ports.linked.take(domains);
    if (viewset !== undefined) this.#exchange(viewset.domain, viewset.ready);
    const linked = new Set(state.domains.map(({ name }) => name));
    for (const domain of this.#ready.keys()) if (!linked.has(domain)) this.#exchange(domain, null);
  }

  #exchange(domain: string, next: ReadyViewset | null): void {
    const table = this.#ready.get(domain)?.table ?? null;
    if (table !== null && table !== next?.table) this.#replaced.push(table);
    if (next === null) this.#ready.delete(domain);
    else this.#ready.set(domain, next);
  }

  #letGo(): void {
    const { pool, onTableLeft } = this.#ports;
    const tables = this.#replaced;
    this.#replaced = [];
    // It resolves when every thread has dropped the earlier states; a pool that is gone rejects.
    void pool.left().then(
      () => tables.forEach((table) => onTableLeft?.(table)),
      () => undefined,
    );
  }

  #inputs(override: Override): ComposeInputs {
    const { documents, linked, locals, now } = this.#ports;
    const { sets } = override.tables ?? this.#tables;
    return {
      domains: override.domains ?? linked.all,
      policies: policiesOf(
        override.policy ?? documentOf(documents, "policy"),
        override.classes ?? documentOf(documents, "policy_classes"),
      ),
      set: (host, kind) => sets.get(`${kind}/${host}`),
      viewset: (domain) =>
        override.viewset?.domain === domain
          ? (override.viewset.ready ?? undefined)
          : this.#ready.get(domain),
      local: (domain) => locals.get(domain),
      challenges: (domain) => {
        const told =
          override.challenges?.domain === domain
            ? override.challenges
            : documentOf(documents, `challenges:${domain}`);
        const nowMs = now().getTime();
        // Those that ended by themselves may stand there for ever: central is away, or the domain orders no more.
        return (told?.challenges ?? [])
          .map(({ host, token, key_authorization: keyAuthorization, until }) => ({
            host,
            token,
            keyAuthorization,
            untilMs: Date.parse(until),
          }))
          .filter(({ untilMs }) => untilMs > nowMs);
      },
      certificates:
        override.certificates === undefined
          ? this.#certificates
          : (override.certificates ?? undefined),
    };
  }
}

/** Returns the policies by host, with what they say of classes of bots. */
function policiesOf(
  policy: JournalBody<"policy.changed"> | undefined,
  said: JournalBody<"policy.classes"> | undefined,
): readonly EffectivePolicy[] {
  const classesOf = new Map(said?.domains.map(({ domain, ...classes }) => [domain, classes]));
  return (policy?.domains ?? []).map((one) => {
    const classes = classesOf.get(one.domain);
    return classes === undefined ? one : { ...one, classes };
  });
}

function isEqual(one: BuiltTables, other: BuiltTables): boolean {
  if (one.arena !== other.arena || one.sets.size !== other.sets.size) return false;
  return [...one.sets].every(([key, { version, table }]) => {
    const same = other.sets.get(key);
    return same?.version === version && same.table.at === table.at;
  });
}

type Stored = {
  /** The file of the vault that is in force. */
  readonly certificates: StoredCertificates;
  /** The file that waits for another secret16, and the place of the entries that brought it. */
  readonly certificates_locked: StoredCertificates & { readonly entry: EntryPlace };
  readonly keys_locked: { readonly entry: EntryPlace };
  readonly domains: JournalBody<"domains.changed">;
  readonly policy: JournalBody<"policy.changed">;
  /** What the policy says of classes of bots. */
  readonly policy_classes: JournalBody<"policy.classes">;
  /** What the next policy will say of them. */
  readonly told_classes: JournalBody<"policy.classes">;
  /** The viewset in force on this host. */
  readonly [viewset: `viewset:${string}`]: JournalBody<"viewset.activated">;
  readonly [releases: `releases:${string}`]: readonly Release[];
  readonly [quarantine: `quarantine:${string}`]: readonly Quarantined[];
  readonly [pin: `pin:${string}`]: Pin;
  readonly [wish: `wish:${string}`]: Wish;
  readonly [prepared: `prepared:${string}`]: PreparedVersion;
  readonly [challenges: `challenges:${string}`]: JournalBody<"challenges.changed">;
};

/**
 * Reads a document. Its type is taken on trust, for documents were validated when they arrived and agent.db
 * holds nothing else.
 */
export function documentOf<K extends keyof Stored>(
  documents: Pick<Documents, "get">,
  key: K,
): Stored[K] | undefined {
  return (documents.get(key) ?? undefined) as Stored[K] | undefined;
}
