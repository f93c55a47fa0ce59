// What passes between the pages and their shared worker: what central told, and whether it tells at all.

import type { ChangeTopic } from "../wire/customer/events.ts";

/** What a page says to the worker: that it is there, and for which session; that it is gone. */
export type Said = { readonly kind: "here"; readonly session: string } | { readonly kind: "gone" };

export type Told =
  | { readonly kind: "live"; readonly isLive: boolean }
  | { readonly kind: "changed"; readonly topics: readonly ChangeTopic[]; readonly domain?: string }
  | { readonly kind: "bye" };
