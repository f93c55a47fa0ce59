// `/incominglogs/`: request records of the customer's domains, by deployment and main domain, newest first.

import { AccelError } from "../../core/faults.ts";
import { parseDomainName } from "../../core/ids.ts";
import {
  logsLimitMax,
  type DeploymentLogs,
  type IncomingLogs,
  type LogLine,
} from "../../wire/customer/incoming-logs.ts";
import { forbidden, invalid, notFound, ok, type Answer, type ProblemAnswer } from "./answer.ts";
import { forUsers, type Call, type Endpoint } from "./endpoint.ts";
import { idOf, isProblem } from "./path-values.ts";
import type { DeploymentFacts } from "./content-unit.ts";
import type { LoggedRequest, LogQuery } from "./ports.ts";
import type { ResourceDeps } from "./resources.ts";
import type { Actor } from "./unit.ts";

export function incomingLogsEndpoints({ ports }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/incominglogs/",
      summary: "Read the request logs of the customer's domains",
      handle: async (call) => readLogs(call, ports.logs),
    }),
  ];
}

type Filters = Pick<LogQuery, "limit" | "after" | "since" | "until"> & {
  readonly deploymentId: number | undefined;
  readonly domain: string | undefined;
};

function parseFilters(query: URLSearchParams): Filters | ProblemAnswer {
  const bad = (name: string, message: string): ProblemAnswer =>
    invalid([{ path: `?${name}`, message }]);
  const limit = query.get("limit") ?? String(logsLimitMax);
  if (!/^\d{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > logsLimitMax)
    return bad("limit", `must be 1 to ${logsLimitMax}`);
  const times: { since?: number; until?: number } = {};
  for (const name of ["since", "until"] as const) {
    const text = query.get(name);
    if (text === null) continue;
    const seconds = parseTime(text);
    if (seconds === undefined)
      return bad(name, "must be seconds since the epoch or an ISO 8601 time");
    times[name] = seconds;
  }
  const [after, domain, id] = [query.get("after"), query.get("domain"), query.get("deployment_id")];
  if (after !== null && (domain === null || id === null))
    return bad("after", "needs domain and deployment_id: each walk has a cursor of its own");
  const name = domain === null ? undefined : parseDomainName(domain);
  if (domain !== null && name === undefined) return notFound(`domain ${JSON.stringify(domain)}`);
  return {
    limit: Number(limit),
    ...(after !== null && { after }),
    ...times,
    deploymentId: id === null ? undefined : idOf(id),
    domain: name,
  };
}

function parseTime(text: string): number | undefined {
  if (/^\d{1,11}(?:\.\d{1,6})?$/.test(text)) return Number(text);
  const ms = /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(ms) ? undefined : ms / 1_000;
}

type Logs = ResourceDeps["ports"]["logs"];

async function readLogs(call: Call<unknown, Actor>, logs: Logs): Promise<Answer> {
  const { actor, query, read } = call;
  if (!actor.mayReadLogs) return forbidden("reading logs was withdrawn from this user");
  const filters = parseFilters(query);
  if (isProblem(filters)) return filters;
  const { deploymentId, domain } = filters;
  const found = await read(async (unit) => {
    if (domain !== undefined && (await unit.domains.find(actor.customerId, domain)) === undefined)
      return notFound(`domain ${domain}`);
    return unit.deployments.list(actor.customerId);
  });
  if ("kind" in found) return found;
  const wanted = found.filter(({ id }) => deploymentId === undefined || id === deploymentId);
  if (deploymentId !== undefined && wanted.length === 0)
    return notFound(`deployment site ${query.get("deployment_id") ?? ""}`);

  let next: string | undefined;
  const deployments: DeploymentLogs[] = [];
  for (const facts of wanted) {
    const one = await readDeployment(facts, filters, logs);
    if (one === "bad-cursor")
      return invalid([{ path: "?after", message: "is no cursor of this service" }]);
    deployments.push(one.logs);
    next = one.next;
  }
  const isWalk = domain !== undefined && deploymentId !== undefined;
  const body: IncomingLogs = { logs_data: { username: actor.username, deployments } };
  return ok(body, isWalk && next !== undefined ? { link: linkTo(query, next) } : {});
}

type DeploymentRead = { readonly logs: DeploymentLogs; readonly next: string | undefined };

async function readDeployment(
  { id, name16, tags, domains: linked }: DeploymentFacts,
  { domain, limit, after, since, until }: Filters,
  logs: Logs,
): Promise<DeploymentRead | "bad-cursor"> {
  let next: string | undefined;
  const domains: DeploymentLogs["domains"] = [];
  // A domain that is asked for by name is read even where it is no longer linked: its records stay.
  for (const name of domain === undefined ? linked : [domain]) {
    try {
      const page = await logs.read({
        deploymentSiteId: id,
        domains: [name],
        limit,
        ...(after !== undefined && { after }),
        ...(since !== undefined && { since }),
        ...(until !== undefined && { until }),
      });
      domains.push({
        domain_name: name,
        domain_logs: page.records.map((record) => encode(record, id)),
      });
      next = page.next;
    } catch (error) {
      if (after !== undefined && error instanceof AccelError && error.code === "NOT_FOUND")
        return "bad-cursor";
      throw error;
    }
  }
  const description = `${name16} (${tags.join(",")})`;
  return { logs: { deployment_id: id, deployment_desc: description, domains }, next };
}

function encode(record: LoggedRequest, deploymentId: number): LogLine {
  return {
    connection: record.connection,
    response_status: record.response_status,
    request_method: record.request_method,
    uri_path: record.uri_path,
    backend_time: record.backend_time,
    when: record.when,
    authority: record.authority,
    deployment_id: deploymentId,
  };
}

function linkTo(query: URLSearchParams, next: string): string {
  const onward = new URLSearchParams(query);
  onward.set("after", next);
  return `</presentation-api/v1/incominglogs/?${onward.toString()}>; rel="next"`;
}
