// Which certificates a domain orders: the hosts for which its devlove in force has `tls.acme`, in groups.
//
// Hosts of one account share a certificate, up to 100 names each: a directory counts certificates, and visitors of one
// domain resume their sessions.

import { effectiveDevlove, type SiteSettings } from "../serving/effective-devlove.ts";
import type { Devlove } from "../serving/devlove.ts";

/** The account with which a host's certificate is ordered. */
export type AcmeAccount = NonNullable<SiteSettings["tls"]["acme"]>;

/**
 * What a devlove says: of the hosts that it names, and of all sub-domains that it does not name. Undefined if it orders
 * nothing.
 */
export type AcmeSaid = {
  readonly main: AcmeAccount | null;
  readonly named: Readonly<Record<string, AcmeAccount | null>>;
};

export function acmeSaid(devlove: Devlove, mainDomain: string): AcmeSaid | undefined {
  const accountOf = (name: string): AcmeAccount | null =>
    effectiveDevlove(
      devlove,
      mainDomain,
      name === mainDomain ? null : { name, share_views_and_views_dir_with_main_domain: true },
    ).tls.acme;
  const others = Object.keys(devlove.domains).filter((name) => name !== mainDomain);
  const main = accountOf(mainDomain);
  const named = Object.fromEntries(others.map((name) => [name, accountOf(name)] as const));
  const isSilent = main === null && Object.values(named).every((account) => account === null);
  return isSilent ? undefined : { main, named };
}

/** The most names of a certificate that directories issue (Let's Encrypt: 100). */
export const acmeNamesMax = 100;

/** One certificate to be ordered. */
export type WantedCertificate = AcmeAccount & {
  /** Counts the certificates of one account from 0. */
  readonly part: number;
  /** In alphabetical order. */
  readonly names: readonly string[];
};

/**
 * Returns the certificates that are wanted. Hosts stay in the certificate in which they are, by `had`; others come into
 * the last one that has room, so that no host orders more than one certificate anew.
 */
export function wantedCertificates(
  { main, named }: AcmeSaid,
  mainDomain: string,
  subDomains: readonly string[],
  had: readonly WantedCertificate[],
): readonly WantedCertificate[] {
  const hosts = [mainDomain, ...subDomains].flatMap((name) => {
    const own = Object.hasOwn(named, name) ? named[name] : undefined;
    const account = name === mainDomain || own === undefined ? main : own;
    return account === null ? [] : [{ name, account }];
  });
  const keyOf = ({ directory, email }: AcmeAccount): string => `${directory} ${email}`;
  const groups = Map.groupBy(hosts, ({ account }) => keyOf(account));
  return [...groups].flatMap(([key, group]) => {
    const [first] = group;
    if (first === undefined) return [];
    const parts = partsOf(
      group.map(({ name }) => name),
      had.filter((one) => keyOf(one) === key),
    );
    return parts.map((one) => ({ ...first.account, ...one }));
  });
}

type Part = Pick<WantedCertificate, "part" | "names">;

function partsOf(names: readonly string[], had: readonly Part[]): readonly Part[] {
  const wanted = new Set(names);
  const kept = had.map(({ part, names: hadNames }) => ({
    part,
    names: hadNames.filter((name) => wanted.has(name)),
  }));
  const placed = new Set(kept.flatMap((one) => one.names));
  const left = names.filter((name) => !placed.has(name)).toSorted();
  const fill = ({ part, names: own }: Part): Part => {
    const more = left.splice(0, acmeNamesMax - own.length);
    return { part, names: [...own, ...more].toSorted() };
  };
  const filled = kept.toSorted((a, b) => b.part - a.part).map(fill);
  for (let part = 0; left.length > 0; part++)
    if (!had.some((one) => one.part === part)) filled.push(fill({ part, names: [] }));
  return filled.filter((one) => one.names.length > 0).toSorted((a, b) => a.part - b.part);
}

/** Hosts that are added one after the other come into one certificate: directories count them (Let's Encrypt: 50 a week). */
const gatheredMs = 300_000;
const gatheredMsMax = 3_600_000;

/** Returns when a certificate is ordered whose names changed now, and first at `sinceMs`, ms since the epoch. */
export function gatheredUntilMs(sinceMs: number, nowMs: number): number {
  return Math.max(nowMs, Math.min(nowMs + gatheredMs, sinceMs + gatheredMsMax));
}
