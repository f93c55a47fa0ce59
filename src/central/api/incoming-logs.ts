// `/incominglogs/`: request records of the customer's domains, by deployment and main domain, newest first.

import { AccelError } from "../../core/faults.ts";
import { parseDomainName } from "../../core/ids.ts";
import {
  logsLimitMax,
  type DeploymentLogs,
  type IncomingLogs,
  type LogLine,
} from "../../wire/customer/incoming-logs.ts";
import {
  forbidden,
  invalid,
  notFound,
  ok,
  problem,
  stream,
  type Answer,
  type ProblemAnswer,
} from "./answer.ts";
import { forUsers, type Call, type Endpoint } from "./endpoint.ts";
import { hostNamed, idOf, isProblem } from "./path-values.ts";
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

const retryAfterS = "2";

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
    const host = domain === undefined ? undefined : await hostNamed(unit, actor, domain);
    if (host !== undefined && isProblem(host)) return host;
    if (host !== undefined && host.main !== domain)
      return invalid([
        { path: "?domain", message: `the records of a sub-domain stand under ${host.main}` },
      ]);
    return unit.deployments.list(actor.customerId);
  });
  if ("kind" in found) return found;
  const wanted = found.filter(({ id }) => deploymentId === undefined || id === deploymentId);
  if (deploymentId !== undefined && wanted.length === 0)
    return notFound(`deployment site ${query.get("deployment_id") ?? ""}`);
  const [only] = wanted;
  try {
    if (domain !== undefined && deploymentId !== undefined && only !== undefined)
      return await readWalk(only, domain, filters, call, logs);
    return await streamed(textOf(actor.username, wanted, filters, logs));
  } catch (error) {
    if (!(error instanceof AccelError) || error.code !== "SPOOL_FAILED") throw error;
    const headers = { "retry-after": retryAfterS };
    return problem(503, "request logs cannot be read now; try again", { headers });
  }
}

/** The first piece is made now: what fails in it decides the status. */
async function streamed(pieces: AsyncGenerator<string, void>): Promise<Answer> {
  const first = await pieces.next();
  return stream(async function* () {
    if (first.done === true) return;
    yield first.value;
    yield* pieces;
  });
}

/** One page of one domain at one deployment, and the way on. */
async function readWalk(
  facts: DeploymentFacts,
  domain: string,
  filters: Filters,
  { actor, query }: Call<unknown, Actor>,
  logs: Logs,
): Promise<Answer> {
  try {
    const { records, next } = await readPage(facts, domain, filters, logs);
    const deployment: DeploymentLogs = { ...headOf(facts), domains: [records] };
    const body: IncomingLogs = {
      logs_data: { username: actor.username, deployments: [deployment] },
    };
    return ok(body, next === undefined ? {} : { link: linkTo(query, next) });
  } catch (error) {
    if (filters.after !== undefined && error instanceof AccelError && error.code === "NOT_FOUND")
      return invalid([{ path: "?after", message: "is no cursor of this service" }]);
    throw error;
  }
}

/** The whole answer, a page at a time: of many deployments and domains it is larger than what should be in memory at once. */
async function* textOf(
  username: string,
  deployments: readonly DeploymentFacts[],
  filters: Filters,
  logs: Logs,
): AsyncGenerator<string, void> {
  let text = `{"logs_data":{"username":${JSON.stringify(username)},"deployments":[`;
  for (const [at, facts] of deployments.entries()) {
    const { deployment_id: id, deployment_desc: description } = headOf(facts);
    text += `${at === 0 ? "" : ","}{"deployment_id":${id},"deployment_desc":${JSON.stringify(description)},"domains":[`;
    // A domain that is asked for by name is read even where it is no longer linked: its records stay.
    const domains = filters.domain === undefined ? facts.domains : [filters.domain];
    for (const [no, domain] of domains.entries()) {
      const { records } = await readPage(facts, domain, filters, logs);
      yield `${text}${no === 0 ? "" : ","}${JSON.stringify(records)}`;
      text = "";
    }
    text += "]}";
  }
  yield `${text}]}}`;
}

type Page = {
  readonly records: DeploymentLogs["domains"][number];
  readonly next: string | undefined;
};

async function readPage(
  { id }: DeploymentFacts,
  domain: string,
  { limit, after, since, until }: Filters,
  logs: Logs,
): Promise<Page> {
  const page = await logs.read({
    deploymentSiteId: id,
    domain,
    limit,
    ...(after !== undefined && { after }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  });
  const lines = page.records.map((record) => encode(record, id));
  return { records: { domain_name: domain, domain_logs: lines }, next: page.next };
}

function headOf({ id, name16, tags }: DeploymentFacts): Omit<DeploymentLogs, "domains"> {
  return { deployment_id: id, deployment_desc: `${name16} (${tags.join(",")})` };
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
