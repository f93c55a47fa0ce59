// Which form of a stored response a visitor is sent: as it was stored, or one of its variants; and which variant he would rather have.

import { asksNoTransform } from "../../../core/http/cache-control.ts";
import { acceptedCodings, isCodable, type Coding } from "../../../core/http/content-coding.ts";
import type { SiteConfig } from "../../../core/serving/effective-devlove.ts";
import { fieldValue, type Field } from "../../../core/http/http-fields.ts";
import type { Entry, EntryMeta } from "../../cache/entry.ts";
import type { ResponseCache } from "./cache-port.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";

export type VariantChoice = {
  /** Undefined: the response as it was stored. */
  readonly variant: (Entry & { readonly coding: Coding }) | undefined;
  /** The best for the visitor, where it is not there. */
  readonly wanted: Coding | undefined;
};

const asStored: VariantChoice = { variant: undefined, wanted: undefined };

/** Whether a response has, or may get, variants. What a site says of it counts beside what its source said. */
export function hasVariants(
  { compression, headers }: Pick<SiteConfig, "compression" | "headers">,
  response: Pick<EntryMeta, "status" | "headers" | "mime"> & { readonly size: number },
): boolean {
  if (!compression) return false;
  const fields = [...response.headers, ...Object.entries(headers.set)];
  return isCodable({ ...response, fields });
}

/**
 * Of a response that has variants; `entries` are all of its URL. A part is always cut out of the response as it was stored, so that what is
 * put together of parts fits together.
 */
export function chooseVariant(
  cache: Pick<ResponseCache, "servable">,
  request: { readonly method: string; readonly fields: readonly Field[] },
  base: Pick<Entry, "id">,
  entries: readonly Entry[],
): VariantChoice {
  const { method, fields } = request;
  if (method === "GET" && fieldValue(fields, "range") !== undefined) return asStored;
  if (asksNoTransform(fields)) return asStored;
  const accepted = acceptedCodings(fieldValue(fields, "accept-encoding"));
  for (const coding of accepted) {
    const variant = entries.find(
      (entry) => entry.coding === coding && entry.baseId === base.id && cache.servable(entry),
    );
    if (variant === undefined) continue;
    const wanted = coding === accepted[0] ? undefined : accepted[0];
    return { variant: { ...variant, coding }, wanted };
  }
  return { variant: undefined, wanted: accepted[0] };
}

/** An answer whose body is that of `sent`. */
export function countVariant(metrics: WorkerMetrics, base: Entry, sent: Entry): void {
  const { coding, domain, size } = sent;
  if (coding === null) return;
  metrics.accel_agent_variants_served_total.inc({ domain, coding });
  metrics.accel_agent_variant_bytes_saved_total.inc({ domain }, base.size - size);
}
