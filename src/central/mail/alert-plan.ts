// Decides which alerts begin and which end: a pure plan over what is in trouble and alerts that fire.
//
// An alert is about a domain (slow, list not fetched), or about a domain as an edge server reaches it
// (unreachable). An alert that fires stays until none of its trouble is left.

import type { BackendTrouble } from "../../core/serving/backend-trouble.ts";

export type PlannedAlert = {
  readonly customerId: number;
  readonly type: string;
  readonly domainId: number;
  readonly domain: string;
  /** Empty if the alert is about the domain wherever it is served. */
  readonly edge: string;
};

/** The only deployment site whose hosts see the troubles; null if there are several. */
export function onlySite(troubles: readonly BackendTrouble[]): number | null {
  const [first, ...others] = new Set(troubles.map(({ deploymentSiteId }) => deploymentSiteId));
  return others.length === 0 ? (first ?? null) : null;
}

export type AlertTypes = Readonly<Record<BackendTrouble["kind"], string>>;

export type AlertPlan<F extends PlannedAlert> = {
  readonly fire: readonly (PlannedAlert & { readonly troubles: readonly BackendTrouble[] })[];
  readonly resolve: readonly F[];
};

export function planAlerts<F extends PlannedAlert>(
  troubles: readonly BackendTrouble[],
  firing: readonly F[],
  types: AlertTypes,
  afterMs: number,
): AlertPlan<F> {
  const keyOf = ({ type, domainId, edge }: Pick<PlannedAlert, "type" | "domainId" | "edge">) =>
    `${type} ${domainId} ${edge}`;
  const alertOf = ({ kind, customerId, domainId, domain, edge }: BackendTrouble): PlannedAlert => ({
    customerId,
    domainId,
    domain,
    type: types[kind],
    edge: kind === "slow" ? "" : edge,
  });
  const byAlert = Map.groupBy(troubles, (trouble) => keyOf(alertOf(trouble)));
  const known = new Set(firing.map((alert) => keyOf(alert)));
  const fire = [...byAlert].flatMap(([key, all]) => {
    const [first] = all;
    const isDue = all.some((trouble) => lasts(trouble, afterMs));
    return first === undefined || known.has(key) || !isDue
      ? []
      : [{ ...alertOf(first), troubles: all }];
  });
  return { fire, resolve: firing.filter((alert) => !byAlert.has(keyOf(alert))) };
}

/** A list of a bot that is fetched from a URL and has not come for too long. */
export type StaleList = {
  readonly customerId: number;
  readonly domainId: number;
  /** The main domain. */
  readonly domain: string;
  /** The main domain or the sub-domain whose list it is. */
  readonly host: string;
  readonly kind: "bad" | "vip";
  readonly bot: string;
  readonly url: string;
  readonly reason: string | null;
  /** When it came last, or was set. ISO 8601. */
  readonly since: string;
};

export type StalePlan<F extends PlannedAlert> = {
  readonly fire: readonly (PlannedAlert & { readonly lists: readonly StaleList[] })[];
  readonly resolve: readonly F[];
};

/** Plans alerts of lists that do not come: one for each domain, however many of its lists. */
export function planStaleLists<F extends PlannedAlert>(
  stale: readonly StaleList[],
  firing: readonly F[],
  type: string,
): StalePlan<F> {
  const byDomain = Map.groupBy(stale, ({ domainId }) => domainId);
  const known = new Set(firing.map(({ domainId }) => domainId));
  const fire = [...byDomain.values()].flatMap((lists) => {
    const [first] = lists;
    if (first === undefined || known.has(first.domainId)) return [];
    const { customerId, domainId, domain } = first;
    return [{ customerId, domainId, domain, type, edge: "", lists }];
  });
  return { fire, resolve: firing.filter(({ domainId }) => !byDomain.has(domainId)) };
}

/** Returns whether the backend was bad from end to end of the time, as far as was seen, and is bad now. */
function lasts({ since, lastBad, isGoodNow }: BackendTrouble, afterMs: number): boolean {
  return !isGoodNow && Date.parse(lastBad) - Date.parse(since) >= afterMs;
}
