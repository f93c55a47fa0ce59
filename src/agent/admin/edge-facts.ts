// How this host describes itself to central, from the settings `edge:`.

import type { EdgeFacts } from "../../wire/channel.ts";

type Said<K extends keyof EdgeFacts> = { readonly [Key in K]?: string | undefined };

type EdgeSettings = Said<
  "server_name" | "edge_ip_address" | "at_directory" | "metrics_advertise"
> & {
  readonly datacenter?:
    | Said<"datacenter_place" | "country_code" | "datacenter_provider_company">
    | undefined;
};

/** Returns the facts; null if the settings do not state them. What is left out is empty, and is a label of nothing. */
export function edgeFacts(edge: EdgeSettings | undefined): EdgeFacts | null {
  if (edge === undefined) return null;
  const { datacenter = {} } = edge;
  return {
    server_name: edge.server_name ?? "",
    edge_ip_address: edge.edge_ip_address ?? "",
    at_directory: edge.at_directory ?? "",
    datacenter_place: datacenter.datacenter_place ?? "",
    country_code: datacenter.country_code ?? "",
    datacenter_provider_company: datacenter.datacenter_provider_company ?? "",
    metrics_advertise: edge.metrics_advertise ?? null,
  };
}
