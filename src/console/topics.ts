// What passes between the pages and their shared worker: what central told, and whether it tells at all.

import type { ChangeTopic } from "../wire/customer/events.ts";

/** What a page says to the worker: that it is there, and for which session; that it is gone. */
export type Said = { readonly kind: "here"; readonly session: string } | { readonly kind: "gone" };

/** Since when central was not heard, in milliseconds since the epoch, and whether it kept silent or the stream was cut. */
export type Lost = { readonly sinceMs: number; readonly isSilent: boolean };

export type Told =
  /** Neither live nor lost: the first stream is being opened. */
  | { readonly kind: "live"; readonly isLive: boolean; readonly lost?: Lost }
  | { readonly kind: "changed"; readonly topics: readonly ChangeTopic[]; readonly domain?: string }
  | { readonly kind: "bye" };
