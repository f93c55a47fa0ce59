// Calls about clears of the cache: given, counted beforehand, followed, listed.

import {
  clearRecordShape,
  clearStateShape,
  dryRunShape,
  type ClearNamed,
  type ClearRecord,
  type ClearState,
  type DryRun,
} from "../wire/customer/clear.ts";
import { waitDefaultS } from "../wire/customer/proof.ts";
import { arrayOf, type CallOptions, type ApiCalls } from "./transport.ts";

/** What a clear names; at least one thing. */
export type ClearWhat = ClearNamed & { readonly patterns?: readonly string[] };

export type ClearClient = {
  /**
   * Clears what is named; a list is one of patterns. Waits at central for up to `waitSeconds` (default 5, at most 30) until the connected agents have
   * reported.
   */
  clear(
    domain: string,
    what: readonly string[] | ClearWhat,
    options?: CallOptions & { readonly waitSeconds?: number },
  ): Promise<ClearState>;
  /** Returns the past clears of a domain with its sub-domains, or of one sub-domain, the oldest first unless `order` says otherwise. `since` is ISO 8601. */
  clears(
    domain: string,
    options?: CallOptions & { readonly since?: string; readonly order?: "oldest" | "newest" },
  ): Promise<readonly ClearRecord[]>;
  clearState(
    domain: string,
    clearId: string,
    options?: Pick<CallOptions, "signal">,
  ): Promise<ClearState>;
  /** Returns what the clear would hit; waits as `clear` does. */
  dryRunClear(
    domain: string,
    what: readonly string[] | ClearWhat,
    options?: Pick<CallOptions, "signal"> & { readonly waitSeconds?: number },
  ): Promise<DryRun>;
};

export function clearCalls({ call }: Pick<ApiCalls, "call">): ClearClient {
  const clearPath = (domain: string): string =>
    `/clear-accelerator-cache/${encodeURIComponent(domain)}/`;
  return {
    clear: async (domain, what, { waitSeconds = waitDefaultS, ...options } = {}) =>
      (
        await call("POST", clearPath(domain), clearStateShape.decode, {
          body: bodyOf(what),
          query: { wait: waitSeconds },
          ...options,
        })
      ).value,
    dryRunClear: async (domain, what, { waitSeconds = waitDefaultS, ...options } = {}) =>
      (
        await call("POST", clearPath(domain), dryRunShape.decode, {
          body: { ...bodyOf(what), dry_run: true },
          query: { wait: waitSeconds },
          ...options,
        })
      ).value,
    clears: async (domain, { since, order, ...options } = {}) =>
      (
        await call("GET", clearPath(domain), arrayOf(clearRecordShape), {
          query: { since, order },
          ...options,
        })
      ).value,
    clearState: async (domain, clearId, options) => {
      const path = `${clearPath(domain)}${encodeURIComponent(clearId)}/`;
      return (await call("GET", path, clearStateShape.decode, options)).value;
    },
  };
}

function bodyOf(what: readonly string[] | ClearWhat) {
  const isList = (given: typeof what): given is readonly string[] => Array.isArray(given);
  if (isList(what)) return { url_path_patterns: what };
  const { patterns, ...named } = what;
  return { ...named, ...(patterns !== undefined && { url_path_patterns: patterns }) };
}
