// Who may purge, as the devlove documents in force say it: addresses for the host that a request names, keys for
// every domain that names them.

import { hash, timingSafeEqual } from "node:crypto";
import { AddressReader } from "../addresses/address-reader.ts";
import type { AddressTable } from "../addresses/address-table.ts";
import { buildAddressTable } from "../addresses/range-set.ts";
import { fieldValue, type Field } from "../http/http-fields.ts";
import { parseDomainName } from "../ids.ts";
import type { ServedDomain } from "../serving/serving-state.ts";
import type { PurgeScope } from "./purge-items.ts";

/** The fields that may carry a key, beside `Authorization: Bearer`. */
const keyFields = ["x-purge-key", "x-vc-purge-key", "x-auth-key", "fastly-key"];
const keyCharsMax = 1_024;

/** Returns the key that a request offers, undefined where it offers none. */
export function keyOf(fields: readonly Field[]): string | undefined {
  const bearer = /^Bearer[ \t]+(\S+)$/i.exec(fieldValue(fields, "authorization") ?? "")?.[1];
  const key = bearer ?? keyFields.map((name) => fieldValue(fields, name)).find(isSaid);
  return key !== undefined && key.length <= keyCharsMax ? key : undefined;
}

function isSaid(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}

/**
 * Returns whether a request names a site: a host with a dot that is no address. An accelerator itself is named by its address, or
 * as `localhost` and `varnish` are.
 */
export function namesSite(authority: string): boolean {
  return parseDomainName(authority.replace(/:\d*$/, "")) !== undefined;
}

type KeyRight = { readonly digest: Buffer; readonly scopes: PurgeScope[] };
type HostRight = {
  readonly scope: PurgeScope;
  readonly addresses: readonly string[];
  table: AddressTable | undefined;
};

/** The rights of one state. */
export class PurgeRights {
  readonly #keys = new Map<string, KeyRight>();
  readonly #hosts = new Map<string, HostRight>();
  readonly #reader = new AddressReader();

  constructor(domains: readonly ServedDomain[]) {
    for (const { name: domain, hosts } of domains)
      for (const { name, site } of hosts) {
        if (site === null) continue;
        const { addresses, keys } = site.purge;
        if (addresses.length === 0 && keys.length === 0) continue;
        const scope = { domain, host: name === domain ? null : name };
        this.#hosts.set(name, { scope, addresses, table: undefined });
        for (const key of keys) this.#addKey(key, scope);
      }
  }

  /** Whether the host takes purge requests from anybody. */
  isOpen(host: string): boolean {
    return this.#hosts.has(host);
  }

  /** Returns where a key may clear; main domains stand for their sub-domains. */
  ofKey(key: string): readonly PurgeScope[] {
    const digest = hash("sha256", key, "buffer");
    // The look-up is by the digest, of which nobody can choose a part; the comparison tells nothing by its time.
    const right = this.#keys.get(digest.toString("hex"));
    return right !== undefined && timingSafeEqual(right.digest, digest) ? right.scopes : [];
  }

  /** Returns where the address may clear when it names this host. */
  ofAddress(host: string, address: string): PurgeScope | undefined {
    const right = this.#hosts.get(host);
    if (right === undefined || right.addresses.length === 0) return undefined;
    right.table ??= buildAddressTable(right.addresses.map((range) => ({ bot: "purger", range })));
    const family = this.#reader.read(address);
    if (family === 0 || right.table.ownerOf(family, this.#reader.words) === 0) return undefined;
    return right.scope;
  }

  #addKey(key: string, scope: PurgeScope): void {
    const right = this.#keys.get(key) ?? { digest: Buffer.from(key, "hex"), scopes: [] };
    this.#keys.set(key, right);
    const covers = ({ domain, host }: PurgeScope): boolean =>
      domain === scope.domain && (host === null || host === scope.host);
    // The main domain comes first.
    if (!right.scopes.some(covers)) right.scopes.push(scope);
  }
}
