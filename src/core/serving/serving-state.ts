// What a worker knows when it answers a request: one numbered, immutable state (composed in
// compose-state.ts).
//
// Large parts (manifest tables, tables of bot sets) lie in shared memory; handing a state to a thread copies the rest.

import type { OpenChallenges } from "../acme/open-challenges.ts";
import type { AddressTableRef } from "../addresses/address-table.ts";
import type { CertificateTableRef } from "./certificate-table.ts";
import type { SiteConfig } from "./effective-devlove.ts";
import type { ClassAccess } from "./verdict.ts";

export type Views =
  | {
      readonly kind: "manifest";
      readonly table: SharedArrayBuffer;
      /** Prefix inside the viewset: "" or "dir/". */ readonly prefix: string;
    }
  | {
      readonly kind: "directory";
      /** Absolute path of the views directory: nothing outside it is served. */
      readonly root: string;
      /** The prefix inside the directory, as in a manifest. */
      readonly prefix?: string;
      /** The absolute path of a file that is not a view, wherever it lies. */
      readonly except?: string;
    }
  | { readonly kind: "none" };

/** A bot set that speaks for a host. */
export type HostSet = {
  /** The host whose set it is: the host itself, or its main domain. */
  readonly host: string;
  readonly version: number;
  readonly table: AddressTableRef;
  /**
   * The policy of each owner in the table: `pairAllow`, `pairDeny`, else 0. The array may end before the last
   * owner.
   */
  readonly pairs: Uint8Array;
};

export const pairAllow = 1;
export const pairDeny = 2;

export type HostBots = {
  readonly mode: "enforce" | "monitor";
  readonly unknownBotsCanAccess: boolean | null;
  /** What the same policy says of classes of bots; absent: nothing. */
  readonly classes?: ClassAccess;
  /** The domain whose policy says so; absent if the general policy does, or none. */
  readonly unknownBotsPolicyOf?: string;
  /** The policies for claimed names; the two sets are disjoint. */
  readonly allow: ReadonlySet<string>;
  readonly deny: ReadonlySet<string>;
  /** The host's own set first, then the main domain's. Empty sets are left out. */
  readonly vip: readonly HostSet[];
  readonly bad: readonly HostSet[];
};

export type ServedHost = {
  readonly name: string;
  /** Null if no devlove is active for the domain; requests are answered with 503. */
  readonly site: SiteConfig | null;
  readonly views: Views;
  readonly bots: HostBots;
  /** The challenges of the order of its certificate; absent if none are open. */
  readonly challenges?: OpenChallenges;
};

export type ServedDomain = {
  /** The main domain. */
  readonly name: string;
  /** The hosts, the main domain first. */
  readonly hosts: readonly ServedHost[];
  /** The digest of the manifest in force; null if the host's own devlove file is in force. */
  readonly manifest: string | null;
};

export type ServingState = {
  readonly version: number;
  readonly domains: readonly ServedDomain[];
  /** The certificates of all domains; absent if there are none. */
  readonly certificates?: CertificateTableRef;
};

export const nothingServed: ServingState = { version: 0, domains: [] };
