// Which page tells which family. Both pages are jobs of the scrape configuration, so each name has one home: a sum over all jobs counts everything once.
//
//   /metrics               what runs on this host: process, threads, event loop, workers, connections, TLS, health
//   /metrics/deployment    what it does for the customer's deployment: requests, cache, origins, link, sets, viewsets, certificates, spool

export type MetricPage = "edge" | "deployment";

const edgeFamilies =
  /^accel_agent_(?:build|process|thread|health|workers|worker|open_connections|refused_connections|http2_connections|proxy_header|tls)(?:_|$)/;

export function pageOf(family: string): MetricPage {
  return edgeFamilies.test(family) ? "edge" : "deployment";
}

/** As the release before told them: everything at `/metrics`, and all but the process again at `/metrics/deployment`. */
export function wasOn(page: MetricPage, family: string): boolean {
  return page === "edge" || !/^accel_agent_(?:process|thread|build)_/.test(family);
}
