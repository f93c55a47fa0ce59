// One state, ready to be asked: host name → what is served there. Hosts are compiled when they are first asked for.

import type { CertificateTableRef } from "../../../core/serving/certificate-table.ts";
import { isHostItself } from "../../../core/addresses/ip.ts";
import { hostOfAuthority } from "../../../core/ids.ts";
import { compileLimits, type SiteLimits } from "../../../core/limits/site-limits.ts";
import type { SiteConfig } from "../../../core/serving/effective-devlove.ts";
import { PurgeRights } from "../../../core/purge/purge-rights.ts";
import type { HostFact } from "../../../core/serving/request-plan.ts";
import type { ServedHost, ServingState } from "../../../core/serving/serving-state.ts";
import { compileSite, type SiteRoutes } from "../../../core/serving/site-routes.ts";
import type { BlobBodies } from "../files/bodies.ts";
import { DirectoryFiles } from "../files/directory-files.ts";
import { ManifestFiles } from "../files/manifest-files.ts";
import { noFiles, type SiteFiles } from "../files/site-files.ts";
import type { BadBlob } from "./worker-messages.ts";

export type ServedSite = {
  readonly site: SiteConfig;
  readonly routes: SiteRoutes;
  readonly limits: SiteLimits;
  readonly files: SiteFiles;
};

export type ServedUnder = {
  readonly kind: "served";
  /** The main domain. */
  readonly domain: string;
  readonly host: ServedHost;
  /** Undefined: no devlove is active. */
  readonly compiled: ServedSite | undefined;
};

export type HostFound = ServedUnder | Exclude<HostFact, { readonly kind: "served" }>;

export type HostTableOptions = {
  readonly defaultDomain: string | null;
  readonly bodies: BlobBodies;
  readonly nowMs: () => number;
  /** Must not throw. */
  readonly onBadBlob?: (blob: BadBlob) => void;
};

export class HostTable {
  readonly version: number;
  readonly certificates: CertificateTableRef | undefined;
  readonly #options: HostTableOptions;
  readonly #hosts = new Map<string, { readonly domain: string; readonly host: ServedHost }>();
  readonly #compiled = new Map<string, ServedUnder>();
  readonly #domains: ServingState["domains"];
  #purgeRights: PurgeRights | undefined;

  constructor(state: ServingState, options: HostTableOptions) {
    this.version = state.version;
    this.certificates = state.certificates;
    this.#options = options;
    this.#domains = state.domains;
    for (const domain of state.domains)
      for (const host of domain.hosts) this.#hosts.set(host.name, { domain: domain.name, host });
  }

  /** `authority` as sent; "" when there was none. */
  route(authority: string): HostFound {
    if (this.version === 0) return { kind: "starting" };
    const named = authority === "" ? "" : hostOfAuthority(authority);
    if (named === undefined) return { kind: "malformed" };
    const { defaultDomain } = this.#options;
    const served =
      this.#served(named) ??
      (defaultDomain !== null && isHostItself(named) ? this.#served(defaultDomain) : undefined);
    return served ?? { kind: "unknown", host: named };
  }

  /** Who may purge here. */
  get purgeRights(): PurgeRights {
    return (this.#purgeRights ??= new PurgeRights(this.#domains));
  }

  /** Returns the main domain of a host that is served. */
  domainOf(host: string): string | undefined {
    return this.#hosts.get(host)?.domain;
  }

  #served(name: string): ServedUnder | undefined {
    const known = this.#compiled.get(name);
    if (known !== undefined) return known;
    const found = this.#hosts.get(name);
    if (found === undefined) return undefined;
    const { domain, host } = found;
    const compiled = this.#compile(host);
    const served: ServedUnder = { kind: "served", domain, host, compiled };
    this.#compiled.set(name, served);
    return served;
  }

  #compile({ site, views }: ServedHost): ServedSite | undefined {
    if (site === null) return undefined;
    const { bodies, nowMs, onBadBlob = () => {} } = this.#options;
    const files: SiteFiles =
      views.kind === "manifest"
        ? new ManifestFiles(views.table, views.prefix, { bodies, onBadBlob })
        : views.kind === "directory"
          ? new DirectoryFiles(views, nowMs, bodies)
          : noFiles;
    return { site, routes: compileSite(site), limits: compileLimits(site), files };
  }
}
