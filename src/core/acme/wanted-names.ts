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

export function wantedCertificates(
  { main, named }: AcmeSaid,
  mainDomain: string,
  subDomains: readonly string[],
): readonly WantedCertificate[] {
  const hosts = [mainDomain, ...subDomains].flatMap((name) => {
    const own = Object.hasOwn(named, name) ? named[name] : undefined;
    const account = name === mainDomain || own === undefined ? main : own;
    return account === null ? [] : [{ name, account }];
  });
  const groups = Map.groupBy(hosts, ({ account }) => `${account.directory} ${account.email}`);
  return [...groups.values()].flatMap((group) => {
    const names = group.map(({ name }) => name).toSorted();
    const [first] = group;
    if (first === undefined) return [];
    return Array.from({ length: Math.ceil(names.length / acmeNamesMax) }, (_, part) => ({
      ...first.account,
      part,
      names: names.slice(part * acmeNamesMax, (part + 1) * acmeNamesMax),
    }));
  });
}
