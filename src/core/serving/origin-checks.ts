// Active checks of origins (`backend.health`): which ones a state needs, and what their outcomes say about an
// origin.

import type { BackendSettings, HealthCheck } from "./effective-devlove.ts";
import type { ServingState } from "./serving-state.ts";

export type OriginCheck = {
  readonly key: string;
  /** Main domain. */
  readonly domain: string;
  readonly url: string;
  /**
   * The host that is asked for. `preserve` has no visitor's host to preserve here, so it is the first host of
   * the domain that has this backend.
   */
  readonly host: string;
  readonly connectTimeoutS: number;
  readonly health: HealthCheck;
};

/**
 * The most checks of one domain, so that one domain's sub-domains do not keep others' origins from being
 * checked.
 */
export const checksOfDomainMax = 64;
/** The most checks of all domains together; each is a connection of the main thread now and then. */
export const checksMax = 1_024;

/**
 * Returns one name for checks that share a verdict: sub-domains with the same backend share its checks,
 * customers never do. Returns undefined if the backend is not checked.
 */
export function checkKey(
  domain: string,
  url: string,
  { host, health }: Pick<BackendSettings, "host" | "health">,
): string | undefined {
  if (health === null) return undefined;
  const { path, interval_s, timeout_s, statuses } = health;
  return JSON.stringify([domain, url, host, path, interval_s, timeout_s, statuses]);
}

export type ChecksPlan = {
  readonly checks: ReadonlyMap<string, OriginCheck>;
  /** The number of checks beyond the limits. Their origins count as healthy until a request fails. */
  readonly leftOut: number;
  /**
   * Main domains with an origin that is not checked, so that the checks do not speak for the whole domain.
   */
  readonly partly: ReadonlySet<string>;
};

export function planChecks(state: ServingState): ChecksPlan {
  const checks = new Map<string, OriginCheck>();
  const leftOut = new Set<string>();
  const partly = new Set<string>();
  for (const { name: domain, hosts } of state.domains) {
    let own = 0;
    for (const { name, site } of hosts) {
      const backend = site?.backend ?? null;
      if (backend !== null && backend.health === null) partly.add(domain);
      for (const check of checksOf(domain, name, backend)) {
        if (checks.has(check.key)) continue;
        if (own >= checksOfDomainMax || checks.size >= checksMax) {
          leftOut.add(check.key);
          partly.add(domain);
        } else {
          own++;
          checks.set(check.key, check);
        }
      }
    }
  }
  return { checks, leftOut: leftOut.size, partly };
}

function checksOf(
  domain: string,
  hostName: string,
  backend: BackendSettings | null,
): readonly OriginCheck[] {
  if (backend === null || backend.health === null) return [];
  const { urls, health, connect_timeout_s: connectTimeoutS } = backend;
  const host = backend.host === "preserve" ? hostName : backend.host;
  return urls.flatMap((url) => {
    const key = checkKey(domain, url, backend);
    return key === undefined ? [] : [{ key, domain, url, host, connectTimeoutS, health }];
  });
}

/** The verdict on a domain's origins: "down" if all are checked and every one fails, "up" if one is good. */
export type CheckVerdict = "up" | "down";

export type CheckedOrigin = { readonly isDown: boolean; readonly failures: number };

/** An origin that nobody has checked yet is asked like any other. */
export const unchecked: CheckedOrigin = { isDown: false, failures: 0 };

/** The failures in a row that make an origin down: one lost packet is no outage. One good answer ends it. */
const failuresToBeDown = 2;

export function checkedOnce({ failures }: CheckedOrigin, isGood: boolean): CheckedOrigin {
  if (isGood) return unchecked;
  return { isDown: failures + 1 >= failuresToBeDown, failures: failures + 1 };
}

/**
 * The most checks a second of all domains together, so that many domains with short intervals do not keep the
 * main thread busy: 1,024 checks take at least 10 s.
 */
const checksPerSecondMax = 100;

/**
 * Returns the seconds from one check of an origin to the next, spread by a tenth so that the checks do not
 * run in step.
 */
export function checkPauseS(intervalS: number, checks: number, random: number): number {
  return Math.max(intervalS, checks / checksPerSecondMax) * (0.9 + 0.2 * random);
}
