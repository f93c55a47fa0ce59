// What an origin has taken back: gone for everybody, and for what is under way, before anybody has the answer that said so.

import type { EntryKey } from "../../cache/entry.ts";
import type { ResponseCache } from "./cache-port.ts";
import type { OriginDeps } from "../origin/origin-ask.ts";

/** All variants of the URL. Never rejects: the visitor is answered whether or not the index could. */
export async function dropStored(
  { cache, problems }: Pick<OriginDeps, "problems"> & { readonly cache: ResponseCache },
  key: EntryKey,
): Promise<void> {
  try {
    await cache.invalidate(key);
  } catch (error) {
    problems.tell("warn", key.domain, "invalidation failed", error);
  }
}
