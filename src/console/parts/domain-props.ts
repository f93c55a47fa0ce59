// What the parts about one domain are given.

import type { Domain } from "../../wire/customer/domain.ts";

/** A site as the forms of domains name it. */
export type SiteNamed = { readonly id: number; readonly name: string };

export type DomainsProps = {
  readonly sites: readonly SiteNamed[];
  readonly onChange: () => void;
};

export type DomainProps = DomainsProps & { readonly domain: Domain };
