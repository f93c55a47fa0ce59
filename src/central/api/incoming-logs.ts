// `/incominglogs/`: request records of the customer's domains, by deployment and main domain, newest first.

import { gives } from "../../wire/customer/operation.ts";
import { AccelError } from "../../core/faults.ts";
import { parseDomainName } from "../../core/ids.ts";
import {
  logsLimitMax,
  incomingLogsShape,
  logParameters,
} from "../../wire/customer/incoming-logs.ts";
import {
  forbidden,
  invalid,
  notFound,
  problem,
  stream,
  type Answer,
  type ProblemAnswer,
} from "./http/answer.ts";
import { parseQueryTime, queryTimeForm } from "./http/query-time.ts";
import { forUsers, type EndpointCall, type Endpoint } from "./http/endpoint.ts";
import { hostNamed, idOf, isProblem, shownId } from "./http/path-values.ts";
import type { DeploymentFacts } from "../store/content/deployments.ts";
import type { LogQuery } from "../agents/log-reader.ts";
import type { ResourceDeps } from "./deps.ts";
import { reaches, type Actor } from "../store/people/tokens.ts";
import { listDeployments } from "../store/content/deployments.ts";

export function incomingLogsEndpoints({ ports }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/incominglogs/",
      id: "getIncomingLogs",
      needs: { role: "read", scope: "domain" },
      summary: "Read the request logs of the customer's domains",
      gives: gives(incomingLogsShape),
      refuses: [400, 403, 404, 503],
      query: logParameters,
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
    const seconds = parseQueryTime(text);
    if (seconds === undefined) return bad(name, `must be ${queryTimeForm}`);
    times[name] = seconds;
  }
  const [after, domain, id] = [query.get("after"), query.get("domain"), query.get("deployment_id")];
  if (after !== null && (domain === null || id === null))
    return bad("after", "needs domain and deployment_id: each pair of them has cursors of its own");
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

type Logs = ResourceDeps["ports"]["logs"];

async function readLogs(call: EndpointCall<unknown, Actor>, logs: Logs): Promise<Answer> {
  const { actor, query, read } = call;
  if (!actor.mayReadLogs) return forbidden("the operator does not let this user read logs");
  const filters = parseFilters(query);
  if (isProblem(filters)) return filters;
  const { deploymentId, domain } = filters;
  const found = await read(async (work) => {
    const host = domain === undefined ? undefined : await hostNamed(work, actor, domain);
    if (host !== undefined && isProblem(host)) return host;
    if (host !== undefined && host.main !== domain)
      return invalid([
        { path: "?domain", message: `the records of a sub-domain are listed under ${host.main}` },
      ]);
    const deployments = await listDeployments(work, actor.customerId);
    return deployments.flatMap((one) => {
      const domains = one.domains.filter((name) => reaches(actor, name));
      return actor.domains === null || domains.length > 0 ? [{ ...one, domains }] : [];
    });
  });
  if ("kind" in found) return found;
  const wanted = found.filter(({ id }) => deploymentId === undefined || id === deploymentId);
  if (deploymentId !== undefined && wanted.length === 0)
    return notFound(`deployment site ${shownId(query.get("deployment_id") ?? "")}`);
  const [only] = wanted;
  try {
    if (domain !== undefined && deploymentId !== undefined && only !== undefined)
      return await readWalk(only, domain, filters, call, logs);
    return await streamed(textOf(actor.username, wanted, filters, logs));
  } catch (error) {
    if (!(error instanceof AccelError) || error.code !== "LOGS_UNAVAILABLE") throw error;
    const headers = { "retry-after": retryAfterS };
    return problem(503, "request logs cannot be read now; try again", { headers });
  }
}

/** Makes the first piece now, because a failure in it decides the status. */
async function streamed(pieces: AsyncGenerator<string, void>): Promise<Answer> {
  const first = await pieces.next();
  return stream(async function* () {
    if (first.done === true) return;
    yield first.value;
    yield* pieces;
  });
}

/** Reads one page of one domain at one deployment, with the link to the next. */
async function readWalk(
  facts: DeploymentFacts,
  domain: string,
  filters: Filters,
  { actor, query }: EndpointCall<unknown, Actor>,
  logs: Logs,
): Promise<Answer> {
  try {
    const { text, next } = await readPage(facts, domain, filters, logs);
    const whole = `${beginning(actor.username)}${beginningOf(facts)}${text}]}]}}`;
    const pieces = async function* () {
      yield whole;
    };
    return stream(pieces, next === undefined ? {} : { link: linkTo(query, next) });
  } catch (error) {
    if (filters.after !== undefined && error instanceof AccelError && error.code === "NOT_FOUND")
      return invalid([{ path: "?after", message: "is no cursor of this service" }]);
    throw error;
  }
}

/**
 * Yields the whole answer, a page at a time: with many deployments and domains it is larger than what should
 * be in memory at once.
 */
async function* textOf(
  username: string,
  deployments: readonly DeploymentFacts[],
  filters: Filters,
  logs: Logs,
): AsyncGenerator<string, void> {
  let text = beginning(username);
  for (const [at, facts] of deployments.entries()) {
    text += `${at === 0 ? "" : ","}${beginningOf(facts)}`;
    // A domain that is asked for by name is read even if it is no longer linked, because its records stay.
    const domains = filters.domain === undefined ? facts.domains : [filters.domain];
    for (const [no, domain] of domains.entries()) {
      const page = await readPage(facts, domain, filters, logs);
      yield `${text}${no === 0 ? "" : ","}${page.text}`;
      text = "";
    }
    text += "]}";
  }
  yield `${text}]}}`;
}

// The texts below are the parts of `IncomingLogs` (wire/customer/incoming-logs.ts).

function beginning(username: string): string {
  return `{"logs_data":{"username":${JSON.stringify(username)},"deployments":[`;
}

function beginningOf({ id, name16, tags }: DeploymentFacts): string {
  const description = JSON.stringify(`${name16} (${tags.join(",")})`);
  return `{"deployment_id":${id},"deployment_desc":${description},"domains":[`;
}

type DomainPage = { readonly text: string; readonly next: string | undefined };

async function readPage(
  { id }: DeploymentFacts,
  domain: string,
  { limit, after, since, until }: Filters,
  logs: Logs,
): Promise<DomainPage> {
  const page = await logs.read({
    deploymentSiteId: id,
    domain,
    limit,
    ...(after !== undefined && { after }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  });
  const text = `{"domain_name":${JSON.stringify(domain)},"domain_logs":${page.logs}}`;
  return { text, next: page.next };
}

function linkTo(query: URLSearchParams, next: string): string {
  const onward = new URLSearchParams(query);
  onward.set("after", next);
  return `</presentation-api/v1/incominglogs/?${onward.toString()}>; rel="next"`;
}
