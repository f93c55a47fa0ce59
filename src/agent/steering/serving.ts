// What is served now: keeps the inputs of the composed state together and publishes a new state whenever one of them changes.

import {
  composeState,
  type ComposeInputs,
  type EffectivePolicy,
  type LinkedDomain,
  type ReadyViewset,
} from "../../core/compose-state.ts";
import { nothingServed, type ServingState } from "../../core/serving-state.ts";
import type { JournalBody } from "../../wire/journal.ts";
import type { Documents, LocalSites, Sets, SiteNames, WorkerPool } from "./ports.ts";

export type ServingPorts = {
  readonly documents: Documents;
  readonly sets: Sets;
  readonly locals: LocalSites;
  readonly pool: WorkerPool;
};

type Override = {
  readonly domains?: readonly LinkedDomain[];
  readonly policies?: readonly EffectivePolicy[];
  readonly viewset?: { readonly domain: string; readonly ready: ReadyViewset };
};

export class Serving {
  readonly #ports: ServingPorts;
  /** Prepared viewsets in force, by main domain. */
  readonly #ready = new Map<string, ReadyViewset>();
  #state: ServingState = nothingServed;

  constructor(ports: ServingPorts) {
    this.#ports = ports;
  }

  /** The state that workers serve. */
  get state(): ServingState {
    return this.#state;
  }

  domains(): readonly LinkedDomain[] {
    return (
      documentOf<JournalBody<"domains.changed">>(this.#ports.documents, "domains")?.domains ?? []
    );
  }

  /** Undefined: not linked to this deployment site. */
  names(domain: string): SiteNames | undefined {
    const linked = this.domains().find(({ name }) => name === domain);
    return linked === undefined
      ? undefined
      : { name: linked.name, subDomains: linked.sub_domains.map(({ name }) => name) };
  }

  /** A viewset that was committed before the start and is whole. Takes effect with the next publish. */
  restore(domain: string, ready: ReadyViewset): void {
    this.#ready.set(domain, ready);
  }

  /** Resolves when every worker serves the change. `commit` makes it durable between staging and flip. */
  async publish(override: Override = {}, commit?: () => void): Promise<void> {
    let next = this.#state;
    await this.#ports.pool.publish((version) => {
      next = composeState(version, this.#inputs(override));
      return next;
    }, commit);
    this.#state = next;
    if (override.viewset !== undefined)
      this.#ready.set(override.viewset.domain, override.viewset.ready);
    const linked = new Set(next.domains.map(({ name }) => name));
    for (const domain of this.#ready.keys()) if (!linked.has(domain)) this.#ready.delete(domain);
  }

  #inputs(override: Override): ComposeInputs {
    const { documents, sets, locals } = this.#ports;
    return {
      domains: override.domains ?? this.domains(),
      policies:
        override.policies ??
        documentOf<JournalBody<"policy.changed">>(documents, "policy")?.domains ??
        [],
      set: (host, kind) => sets.table(host, kind),
      viewset: (domain) =>
        override.viewset?.domain === domain ? override.viewset.ready : this.#ready.get(domain),
      local: (domain) => locals.get(domain),
    };
  }
}

/** Documents were validated when they arrived; agent.db holds nothing else. */
export function documentOf<T>(documents: Documents, key: string): T | undefined {
  return (documents.get(key) ?? undefined) as T | undefined;
}
