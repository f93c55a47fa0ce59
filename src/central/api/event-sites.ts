// Changes at deployment sites, gathered until it is looked up whose they are and what they are about.

import type { ChangeTopic } from "../../wire/customer/events.ts";
import type { Change } from "../agents/changes.ts";
import type { Work } from "../store/engine/work.ts";
import { domainsOfSites, entriesAbout, ownersOfSites } from "../store/journal/changed-places.ts";
import { anyProved, topicsOfKind } from "./change-topics.ts";
import type { Hint } from "./event-hints.ts";

/** As many entries are looked up at a time; of more it is told what they may be about. */
const entriesMax = 50;
/** As many sites are looked up at a time; changes at more are left out, and the next change there is told. */
const sitesMax = 1_000;
/** The sites whose customers are remembered; they never change. */
const ownersMax = 20_000;

type Changed = { readonly topics: Set<ChangeTopic>; readonly seqs: Set<number> };
type SiteChange = Extract<Change, { readonly siteId: number }>;
export type CustomersHint = { readonly customerId: number; readonly hint: Hint };

export class SiteChanges {
  readonly #isHeard: (customerId: number) => boolean;
  readonly #owners = new Map<number, number>();
  #sites = new Map<number, Changed>();
  #entries = 0;

  /** `isHeard`: whether anybody listens of a customer. */
  constructor(isHeard: (customerId: number) => boolean) {
    this.#isHeard = isHeard;
  }

  get isAny(): boolean {
    return this.#sites.size > 0;
  }

  /** Returns whether it is looked up: false if nobody listens. */
  add(change: SiteChange): boolean {
    const { siteId } = change;
    const owner = this.#owners.get(siteId);
    if (owner !== undefined && !this.#isHeard(owner)) return false;
    const changed = this.#sites.get(siteId) ?? { topics: new Set(), seqs: new Set() };
    if (this.#sites.size >= sitesMax && !this.#sites.has(siteId)) return false;
    this.#sites.set(siteId, changed);
    if (change.kind === "site") for (const topic of change.topics) changed.topics.add(topic);
    else
      for (const seq of change.seqs) {
        if (changed.seqs.has(seq)) continue;
        if (this.#entries < entriesMax) changed.seqs.add(seq);
        else for (const topic of anyProved) changed.topics.add(topic);
        this.#entries++;
      }
    return true;
  }

  /** Takes what was gathered, and returns the hints of it. */
  async resolve(work: Work): Promise<readonly CustomersHint[]> {
    const sites = this.#sites;
    this.#sites = new Map();
    this.#entries = 0;
    await this.#findOwners(work, [...sites.keys()]);
    const heard = [...sites].flatMap(([siteId, changed]) => {
      const customerId = this.#owners.get(siteId);
      const isHeard = customerId !== undefined && this.#isHeard(customerId);
      return isHeard ? [{ siteId, customerId, ...changed }] : [];
    });
    const linked = await domainsOfSites(
      work,
      heard.map(({ siteId }) => siteId),
    );
    const hints: CustomersHint[] = [];
    for (const { siteId, customerId, topics, seqs } of heard) {
      const forDomains = linked.get(siteId) ?? [];
      if (topics.size > 0)
        hints.push({ customerId, hint: { topics: [...topics], domains: [], forDomains } });
      const places = [...seqs].map((seq) => ({ deploymentSiteId: siteId, seq }));
      for (const { kind, domain } of await entriesAbout(work, places)) {
        const domains = domain === undefined ? [] : [domain];
        const only = domain === undefined ? forDomains : domains;
        hints.push({ customerId, hint: { topics: topicsOfKind(kind), domains, forDomains: only } });
      }
    }
    return hints;
  }

  async #findOwners(work: Work, siteIds: readonly number[]): Promise<void> {
    if (this.#owners.size > ownersMax) this.#owners.clear();
    const unknown = siteIds.filter((id) => !this.#owners.has(id));
    if (unknown.length === 0) return;
    for (const [id, owner] of await ownersOfSites(work, unknown)) this.#owners.set(id, owner);
  }
}
