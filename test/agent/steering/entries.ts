// Bodies of journal entries, and a snapshot, for the tests of steering, as short as they can be said.

import type { SetElement } from "../../../src/core/addresses/set-digest.ts";
import type { ClassAccess } from "../../../src/core/serving/verdict.ts";
import type { JournalBody } from "../../../src/wire/journal.ts";
import type { Snapshot } from "../../../src/wire/snapshot.ts";
import { epoch } from "./disk.ts";
import { digestOf, digestOfSet, setState, type FakeCentral } from "./fake-sets.ts";

export function domainsChanged(
  domains: Readonly<Record<string, readonly string[]>>,
): JournalBody<"domains.changed"> {
  return {
    domains: Object.entries(domains).map(([name, subs]) => ({
      name,
      sub_domains: subs.map((sub) => ({
        name: sub,
        share_views_and_views_dir_with_main_domain: true,
      })),
    })),
  };
}

export function activated(domain: string, name: string): JournalBody<"viewset.activated"> {
  return { domain, viewset_id: 7, viewset_name: name, manifest: digestOf(name) };
}

/** From an empty set: `added` is all that there is then. */
export function botsChanged(
  domain: string,
  from: number,
  added: readonly SetElement[],
): JournalBody<"bots.changed"> {
  return {
    domain,
    set: "bad",
    from_version: from,
    to_version: from + 1,
    added: [...added],
    removed: [],
    count: added.length,
    digest: digestOfSet(added),
    shrink_meant: false,
  };
}

export function policyChanged(
  domain: string,
  unknown: boolean | null,
): JournalBody<"policy.changed"> {
  return { domains: [{ domain, unknown_bots_can_access: unknown, allow: [], deny: [] }] };
}

export function classesSaid(domain: string, classes: ClassAccess): JournalBody<"policy.classes"> {
  return { domains: [{ domain, ...classes }] };
}

export function cleared(clearId: string, pattern: string): JournalBody<"cache.clear"> {
  return { clear_id: clearId, domain: "a.example", host: null, patterns: [pattern] };
}

export function importing(domain: string): JournalBody<"viewset.import"> {
  return { import_id: "i1", domain };
}

/** a.example with a viewset and sub-domain, c.example without; the sets that central has of them; b.example is no longer linked. */
export function snapshotOf(central: FakeCentral): Snapshot {
  const linked = domainsChanged({ "a.example": ["sub.a.example"], "c.example": [] });
  const hosts = new Set(["a.example", "sub.a.example", "c.example"]);
  return {
    epoch,
    seq: 9,
    chain: digestOf("chain"),
    domains: linked,
    policy: policyChanged("c.example", true),
    viewsets: [{ ...activated("a.example", "three"), seq: 4 }],
    bots: [...central.sets].flatMap(([key, { version, elements }]): Snapshot["bots"] => {
      const [set, domain] = key.split("/");
      if ((set !== "bad" && set !== "vip") || domain === undefined || !hosts.has(domain)) return [];
      return [setState(domain, set, version, elements, central.shrinkMeant)];
    }),
    keys: { keys: [] },
    certificates: { certificates: [] },
    vault_entries: { keys: null, certificates: null },
    imports: [],
  };
}
