// Clears by purge requests that agents have carried out: whose domain it is, and the clear for all its agents.

import { readClearItems, type PlannedClear } from "../../../core/patterns/clear-items.ts";
import {
  everythingLike,
  filterItems,
  givenItems,
  itemKeys,
  type PurgeItems,
} from "../../../core/purge/purge-items.ts";
import type { HostRow } from "../content/domains.ts";
import type { Queries } from "../engine/database.ts";
import type { Work } from "../engine/work.ts";
import { createClear } from "./clears.ts";
import { subDomainNames } from "./site-state.ts";

/** Returns the domain, or its sub-domain `host`, if it is linked to the site. */
export async function purgedHost(
  db: Queries,
  deploymentSiteId: number,
  { domain, host }: { readonly domain: string; readonly host: string | null },
): Promise<HostRow | undefined> {
  const main = await db
    .selectFrom("domain_links")
    .innerJoin("domains", "domains.id", "domain_links.domain_id")
    .select("domains.id")
    .where("domain_links.deployment_site_id", "=", deploymentSiteId)
    .where("domains.name", "=", domain)
    .executeTakeFirst();
  if (main === undefined) return undefined;
  if (host === null || host === domain) return { domainId: main.id, main: domain, host: domain };
  const sub = await db
    .selectFrom("sub_domains")
    .select("id")
    .where("domain_id", "=", main.id)
    .where("name", "=", host)
    .executeTakeFirst();
  return sub === undefined ? undefined : { domainId: main.id, main: domain, host };
}

/**
 * Writes a clear of the items. Items of hosts that the domain has no more are left out. Returns the clear's
 * id, undefined if the domain is gone or nothing is left.
 */
export async function writePurge(
  work: Work,
  row: HostRow,
  items: PurgeItems,
): Promise<string | undefined> {
  const { domainId, main, host } = row;
  const domain = await work.tx
    .selectFrom("domains")
    .select("id")
    .where("id", "=", domainId)
    .executeTakeFirst();
  if (domain === undefined) return undefined;
  const only = host === main ? null : host;
  const names = new Set([main, ...(await subDomainNames(work.tx, domainId))]);
  const isHost = (name: string): boolean => (only === null ? names.has(name) : name === only);
  const read = planOf(items, only, isHost);
  if (read === undefined) return undefined;
  const { patterns = [], everything, soft, ...texts } = read.items;
  const lists = Object.entries(texts).map(([list, all]) => [list, [...all]] as const);
  const named = {
    ...Object.fromEntries(lists),
    ...(everything === true && { everything }),
    ...(soft === true && { soft }),
  };
  return createClear(work, { ...row, patterns, named, planned: read.planned });
}

type Plan = { readonly items: PurgeItems; readonly planned: PlannedClear };

/** What cannot be read is left out; what is too much as a whole becomes everything. */
function planOf(
  items: PurgeItems,
  only: string | null,
  isHost: (name: string) => boolean,
): Plan | undefined {
  const read = readClearItems(givenItems(items), only, isHost);
  if (read.ok) return { items, planned: read.clear };
  const bad = new Set(read.faults.map(({ kind, at }) => `${kind} ${items[kind]?.[at]}`));
  const rest = filterItems(items, (key) => !bad.has(key.replace(/^soft /, "")));
  if (itemKeys(rest).length === 0) return undefined;
  const again = readClearItems(givenItems(rest), only, isHost);
  if (again.ok) return { items: rest, planned: again.clear };
  const all = everythingLike(items);
  const whole = readClearItems(givenItems(all), only, isHost);
  return whole.ok ? { items: all, planned: whole.clear } : undefined;
}
