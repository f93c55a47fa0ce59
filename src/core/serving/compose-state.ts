// Composes the state that workers serve from what central said and what the host's own settings say. Pure:
// same inputs, same state.
//
// Which devlove and which views a domain has:
//   active viewset with views      its devlove, its files
//   active viewset without views   its devlove, the host's own views directory where the settings name one
//   no active viewset              the host's own devlove file and views directory, where the settings name them

import { challengesOf, type ToldChallenge } from "../acme/open-challenges.ts";
import { AddressTable, type AddressTableRef } from "../addresses/address-table.ts";
import type { CertificateTableRef } from "./certificate-table.ts";
import type { Devlove } from "./devlove.ts";
import { effectiveDevlove, type SubDomainInput } from "./effective-devlove.ts";
import {
  pairAllow,
  pairDeny,
  type HostBots,
  type HostSet,
  type ServedDomain,
  type ServedHost,
  type ServingState,
  type Views,
} from "./serving-state.ts";
import type { ClassAccess } from "./verdict.ts";

export type LinkedDomain = {
  readonly name: string;
  readonly sub_domains: readonly SubDomainInput[];
};

export type EffectivePolicy = {
  readonly domain: string;
  readonly unknown_bots_can_access: boolean | null;
  readonly unknown_bots_policy_of?: string;
  /** Where the same policy says another thing of a class. */
  readonly classes?: ClassAccess;
  readonly allow: readonly string[];
  readonly deny: readonly string[];
};

/** A viewset that was fetched and validated; `table` is null if it has no views of its own. */
export type ReadyViewset = {
  readonly manifest: string;
  readonly devlove: Devlove;
  readonly table: SharedArrayBuffer | null;
  /** Why this release would refuse it if it were new; absent if it would not. */
  readonly objections?: string;
};

/** The site as it lies on this host; `devlove` is null if its file is missing or not valid. */
export type LocalSite = {
  readonly viewsDir: string;
  readonly devlove: Devlove | null;
  /** The absolute path of the file, which is no view, wherever it lies. */
  readonly devloveFile?: string;
};

/** A bot set as it was last compiled. */
export type CompiledSet = { readonly version: number; readonly table: AddressTableRef };

export type ComposeInputs = {
  readonly domains: readonly LinkedDomain[];
  readonly policies: readonly EffectivePolicy[];
  /** Returns undefined if there is no set, or it is empty. */
  readonly set: (host: string, kind: "bad" | "vip") => CompiledSet | undefined;
  readonly viewset: (domain: string) => ReadyViewset | undefined;
  readonly local: (domain: string) => LocalSite | undefined;
  /** Returns the open challenges of a domain's hosts. */
  readonly challenges?: (domain: string) => readonly ToldChallenge[];
  /** Undefined if the site has none. */
  readonly certificates?: CertificateTableRef | undefined;
};

export function composeState(version: number, inputs: ComposeInputs): ServingState {
  const { certificates } = inputs;
  return {
    version,
    domains: inputs.domains.map((domain) => composeDomain(domain, inputs)),
    ...(certificates !== undefined && { certificates }),
  };
}

function composeDomain(
  { name, sub_domains: subDomains }: LinkedDomain,
  inputs: ComposeInputs,
): ServedDomain {
  const viewset = inputs.viewset(name);
  const local = inputs.local(name);
  const devlove = viewset === undefined ? local?.devlove : viewset.devlove;
  const told = inputs.challenges?.(name) ?? [];
  const host = (subDomain: SubDomainInput | null): ServedHost => {
    const own = subDomain?.name ?? name;
    const site =
      devlove === undefined || devlove === null ? null : effectiveDevlove(devlove, name, subDomain);
    const challenges = told.length === 0 ? undefined : challengesOf(own, told);
    const views: Views = site === null ? { kind: "none" } : viewsOf(site.views_dir, viewset, local);
    return {
      name: own,
      site,
      views,
      bots: botsOf(own, name, site?.bots.mode ?? "enforce", inputs),
      ...(challenges !== undefined && { challenges }),
    };
  };
  return {
    name,
    hosts: [host(null), ...subDomains.map((subDomain) => host(subDomain))],
    manifest: viewset?.manifest ?? null,
  };
}

function viewsOf(
  viewsDir: string,
  viewset: ReadyViewset | undefined,
  local: LocalSite | undefined,
): Views {
  const prefix = viewsDir === "." ? "" : `${viewsDir}/`;
  if (viewset !== undefined && viewset.table !== null)
    return { kind: "manifest", table: viewset.table, prefix };
  if (local === undefined) return { kind: "none" };
  return {
    kind: "directory",
    root: local.viewsDir,
    ...(prefix !== "" && { prefix }),
    ...(local.devloveFile !== undefined && { except: local.devloveFile }),
  };
}

/**
 * Collects policy and pairs. A sub-domain has its own if it was given any, and the main domain's besides; its
 * own come first.
 */
function botsOf(
  host: string,
  mainDomain: string,
  mode: HostBots["mode"],
  { policies, set }: ComposeInputs,
): HostBots {
  const names = host === mainDomain ? [host] : [host, mainDomain];
  const own = names.flatMap((name) => policies.filter(({ domain }) => domain === name));
  const decided = new Map<string, "allow" | "deny">();
  for (const { allow, deny } of own) {
    for (const bot of allow) if (!decided.has(bot)) decided.set(bot, "allow");
    for (const bot of deny) if (!decided.has(bot)) decided.set(bot, "deny");
  }
  const listed = (verdict: "allow" | "deny"): ReadonlySet<string> =>
    new Set([...decided].filter(([, said]) => said === verdict).map(([bot]) => bot));
  const sets = (kind: "bad" | "vip"): readonly HostSet[] =>
    names.flatMap((name) => {
      const compiled = set(name, kind);
      if (compiled === undefined) return [];
      return [{ host: name, ...compiled, pairs: pairsOf(compiled.table, decided) }];
    });
  const unknown = own.find(({ unknown_bots_can_access: said }) => said !== null);
  const { unknown_bots_policy_of: policyOf, classes } = unknown ?? {};
  return {
    mode,
    unknownBotsCanAccess: unknown?.unknown_bots_can_access ?? null,
    ...(classes !== undefined && { classes }),
    ...(policyOf !== undefined && { unknownBotsPolicyOf: policyOf }),
    allow: listed("allow"),
    deny: listed("deny"),
    vip: sets("vip"),
    bad: sets("bad"),
  };
}

/** Marks the decided names that the set holds, one byte an owner, so that a verdict looks up no names. */
function pairsOf(
  table: AddressTableRef,
  decided: ReadonlyMap<string, "allow" | "deny">,
): Uint8Array {
  if (decided.size === 0) return new Uint8Array(0);
  const held = new AddressTable(table);
  const owners = [...decided].map(([bot, said]) => [held.ownerNamed(bot), said] as const);
  const last = owners.reduce((most, [owner]) => Math.max(most, owner), 0);
  const pairs = new Uint8Array(last === 0 ? 0 : last + 1);
  for (const [owner, said] of owners)
    if (owner !== 0) pairs[owner] = said === "allow" ? pairAllow : pairDeny;
  return pairs;
}
