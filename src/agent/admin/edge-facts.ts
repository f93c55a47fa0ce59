// How this host describes itself to central, from the settings `edge:`.

import type { EdgeFacts } from "../../wire/channel.ts";

type EdgeSettings = {
  readonly server_name: string;
  readonly edge_ip_address: string;
  readonly at_directory: string;
  readonly datacenter: {
    readonly datacenter_place: string;
    readonly country_code: string;
    readonly datacenter_provider_company: string;
  };
  readonly metrics_advertise?: string | undefined;
};

/** Returns the facts; null if the settings do not state them. */
export function edgeFacts(edge: EdgeSettings | undefined): EdgeFacts | null {
  if (edge === undefined) return null;
  const { datacenter, metrics_advertise: metricsAdvertise, ...rest } = edge;
  return { ...rest, ...datacenter, metrics_advertise: metricsAdvertise ?? null };
}
