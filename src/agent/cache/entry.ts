// What is cached of one response, and what may come of storing it. The consumer declares the same shapes for itself (accelerator/cache-port.ts).

export type EntryKind = "static" | "generated";

export type EntryKey = {
  /** Main domain: what isolates customers. */
  readonly domain: string;
  /** The host that was asked: main domain or sub-domain. */
  readonly host: string;
  readonly kind: EntryKind;
  /** static: relative to the site root, decoded. generated: the URL path as sent. */
  readonly path: string;
  /** Without question mark; "" for static. */
  readonly query: string;
};

export type EntryMeta = {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly mime: string;
  readonly vary: Readonly<Record<string, string>> | null;
  readonly storedAtMs: number;
  readonly initialAgeS: number;
  readonly freshForS: number;
  readonly sourceNo: number;
  readonly digest: string | null;
};

export type Entry = EntryKey & EntryMeta & { readonly id: number; readonly size: number };

export type CommitOutcome =
  | { readonly kind: "stored"; readonly id: number }
  | { readonly kind: "blocked" }
  | { readonly kind: "failed"; readonly reason: string };

/** One response on its way into the index. `object` names its file below objects/; null where there is no body to keep. */
export type Candidate = {
  readonly key: EntryKey;
  readonly meta: EntryMeta;
  readonly object: string | null;
  readonly size: number;
};

/** Whose entries a clear may touch; null is every domain, or every host of the domain. */
export type Scope = { readonly domain: string | null; readonly host: string | null };

export function inScope(
  scope: Scope,
  { domain, host }: Pick<EntryKey, "domain" | "host">,
): boolean {
  return (scope.domain ?? domain) === domain && (scope.host ?? host) === host;
}
