// Calls about what deployments do: request logs, numbers of requests, service status, scrape configuration.

import { alertsShape, type Alert } from "../wire/customer/alert.ts";
import { auditedChangesShape, type AuditedChange } from "../wire/customer/audit.ts";
import type { ConsoleEvent } from "../wire/customer/events.ts";
import { fleetShape, type Fleet } from "../wire/customer/fleet.ts";
import { readEvents } from "./events.ts";
import { analyticsShape, type Analytics, type AnalyticsBy } from "../wire/customer/analytics.ts";
import { imageVariantsShape, type ImageVariants } from "../wire/customer/image-variants.ts";
import {
  incomingLogsShape,
  type IncomingLogs,
  type LogLine,
} from "../wire/customer/incoming-logs.ts";
import { metricsConfShape, type MetricsConf } from "../wire/customer/metrics-conf.ts";
import {
  requestDetailShape,
  requestsShape,
  type RequestDetail,
  type Requests,
} from "../wire/customer/requests.ts";
import { serviceStatusShape, type ServiceStatus } from "../wire/customer/service-status.ts";
import type { ApiCalls } from "./transport.ts";

export type LogFilters = {
  readonly domain?: string;
  readonly deploymentSiteId?: number;
  readonly limit?: number;
  /** Seconds since the epoch. */
  readonly since?: number;
  readonly until?: number;
};

export type LogWalk = LogFilters & Required<Pick<LogFilters, "domain" | "deploymentSiteId">>;

export type AnalyticsFilters = {
  /** Seconds since the epoch. */
  readonly since?: number;
  readonly until?: number;
  readonly step?: Analytics["step"];
  readonly by?: AnalyticsBy;
};

export type RequestFilters = {
  /** Seconds since the epoch. */
  readonly since?: number;
  readonly until?: number;
  readonly limit?: number;
  /** A status, or a class of them as 4xx. */
  readonly status?: string;
  readonly method?: string;
  readonly cache?: string;
  readonly verdict?: string;
  readonly reason?: string;
  readonly bot?: string;
  /** What the target contains. */
  readonly path?: string;
  /** What the path is, without its query. */
  readonly path_is?: string;
  /** An address or a range. */
  readonly address?: string;
  readonly id?: string;
  /** `follow` of an earlier answer. */
  readonly follow?: string;
};

/** An answer, and the path of the question that goes on where it ended. */
export type RequestsPage = Requests & { readonly next: string | undefined };

export type ObservationClient = {
  incomingLogs(filters?: LogFilters): Promise<IncomingLogs>;
  /** Yields all that is retained of one domain at one deployment, newest first, each record once. */
  walkLogs(walk: LogWalk): AsyncGenerator<LogLine, void, undefined>;
  /** Asks one question, which looks at a bounded number of records; `next` of a page goes on. */
  requests(
    domain: string,
    filters?: RequestFilters | { readonly next: string },
  ): Promise<RequestsPage>;
  request(domain: string, requestId: string): Promise<RequestDetail>;
  /** Without filters, the last day of a main domain. */
  analytics(domain: string, filters?: AnalyticsFilters): Promise<Analytics>;
  /** Variants of a main domain's images, by day. */
  imageVariants(domain: string): Promise<ImageVariants>;
  status(domain: string): Promise<ServiceStatus>;
  metricsConf(tag: string): Promise<MetricsConf>;
  /** What of each deployment site stands where. */
  fleet(): Promise<Fleet>;
  /** Yields who changed what of the customer, newest first. */
  audit(filters?: AuditFilters): AsyncGenerator<AuditedChange, void, undefined>;
  /** The alerts that go on, and those that ended since then, a week ago if it is left out. */
  alerts(filters?: { readonly since?: number }): Promise<readonly Alert[]>;
  /** Yields hints of what changes, until central ends the stream or the caller stops. */
  events(signal?: AbortSignal): AsyncGenerator<ConsoleEvent, void, undefined>;
};

export type AuditFilters = {
  /** Seconds since the epoch. */
  readonly since?: number;
  readonly until?: number;
  readonly username?: string;
  /** The id of an operation. */
  readonly operation?: string;
};

export function observationClient({ call, download }: ApiCalls): ObservationClient {
  const path = "/incominglogs/";
  const queryOf = ({ domain, deploymentSiteId, limit, since, until }: LogFilters) => ({
    domain,
    deployment_id: deploymentSiteId,
    limit,
    since,
    until,
  });
  return {
    incomingLogs: async (filters = {}) =>
      (await call("GET", path, incomingLogsShape.decode, { query: queryOf(filters) })).value,
    async *walkLogs(walk) {
      let page = await call("GET", path, incomingLogsShape.decode, { query: queryOf(walk) });
      for (;;) {
        for (const { domains } of page.value.logs_data.deployments)
          for (const { domain_logs: lines = [] } of domains) yield* lines;
        if (page.next === undefined) return;
        page = await call("GET", page.next, incomingLogsShape.decode);
      }
    },
    requests: async (domain, filters = {}) => {
      const { decode } = requestsShape;
      const searchPath = `/requests/${encodeURIComponent(domain)}/`;
      const { value, next } = await ("next" in filters
        ? call("GET", filters.next, decode)
        : call("GET", searchPath, decode, { query: { ...filters } }));
      return { ...value, next };
    },
    request: async (domain, requestId) => {
      const onePath = `/requests/${encodeURIComponent(domain)}/${encodeURIComponent(requestId)}/`;
      return (await call("GET", onePath, requestDetailShape.decode)).value;
    },
    analytics: async (domain, { since, until, step, by } = {}) => {
      const numbersPath = `/analytics/${encodeURIComponent(domain)}/`;
      const query = { since, until, step, by };
      return (await call("GET", numbersPath, analyticsShape.decode, { query })).value;
    },
    imageVariants: async (domain) =>
      (
        await call(
          "GET",
          `/analytics/${encodeURIComponent(domain)}/images/`,
          imageVariantsShape.decode,
        )
      ).value,
    status: async (domain) =>
      (await call("GET", `/${encodeURIComponent(domain)}/status/`, serviceStatusShape.decode))
        .value,
    fleet: async () => (await call("GET", "/fleet/", fleetShape.decode)).value,
    async *audit(filters = {}) {
      const { decode } = auditedChangesShape;
      let page = await call("GET", "/audit/", decode, { query: { ...filters } });
      for (;;) {
        yield* page.value;
        if (page.next === undefined) return;
        page = await call("GET", page.next, decode);
      }
    },
    alerts: async ({ since } = {}) =>
      (await call("GET", "/alerts/", alertsShape.decode, { query: { since } })).value,
    async *events(signal) {
      yield* readEvents(await download("/events/", signal));
    },
    metricsConf: async (tag) => {
      const confPath = `/metrics-conf/by-deployment-tag/${encodeURIComponent(tag)}/`;
      return (await call("GET", confPath, metricsConfShape.decode)).value;
    },
  };
}
