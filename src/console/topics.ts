// What passes between the pages and their shared worker: what central told, and whether it tells at all.

import type { ChangeTopic } from "../wire/customer/events.ts";

export type Told =
  | { readonly kind: "live"; readonly isLive: boolean }
  | { readonly kind: "changed"; readonly topics: readonly ChangeTopic[]; readonly domain?: string }
  | { readonly kind: "bye" };
