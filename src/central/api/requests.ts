// `/requests/{domain}/`: what visitors asked of a domain, searched through all that is kept, or followed; and one
// request with why it was answered so.

import { AccelError } from "../../core/faults.ts";
import { parseRange } from "../../core/addresses/ip.ts";
import { decisionIdPattern } from "../../core/serving/decision.ts";
import { parseStatusRange } from "../../core/tail-query.ts";
import { gives } from "../../wire/customer/operation.ts";
import {
  requestDetailShape,
  requestFilterCharsMax,
  requestParameters,
  requestsLimitDefault,
  requestsLimitMax,
  requestsShape,
} from "../../wire/customer/requests.ts";
import type { FindQuery, FoundRequests } from "../agents/log-finder.ts";
import type { RecordFilter } from "../agents/record-filter.ts";
import { listDeployments } from "../store/content/deployments.ts";
import type { Actor } from "../store/people/tokens.ts";
import type { ResourceDeps } from "./deps.ts";
import {
  forbidden,
  invalid,
  notFound,
  problem,
  stream,
  type Answer,
  type ProblemAnswer,
} from "./http/answer.ts";
import { forUsers, type Endpoint, type EndpointCall } from "./http/endpoint.ts";
import { hostNamed, isProblem } from "./http/path-values.ts";
import { parseQueryTime, queryTimeForm } from "./http/query-time.ts";

type Logs = ResourceDeps["ports"]["logs"];
type Call = EndpointCall<unknown, Actor>;

export function requestEndpoints({ ports, now }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/requests/:domain/",
      id: "listRequests",
      needs: { role: "read", scope: "domain" },
      summary: "Search the requests of a domain, newest first, or follow them as they arrive",
      gives: gives(requestsShape),
      refuses: [400, 403, 404, 503],
      query: requestParameters,
      handle: async (call) => unlessUnreadable(async () => search(call, ports.logs, now())),
    }),
    forUsers({
      method: "GET",
      path: "/requests/:domain/:request_id/",
      id: "getRequest",
      needs: { role: "read", scope: "domain" },
      summary: "Read one request, and why it was answered as it was",
      gives: gives(requestDetailShape),
      refuses: [400, 403, 404, 503],
      handle: async (call) => unlessUnreadable(async () => one(call, ports.logs)),
    }),
  ];
}

const retryAfterS = "2";

async function unlessUnreadable(read: () => Promise<Answer>): Promise<Answer> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof AccelError) || error.code !== "LOGS_UNAVAILABLE") throw error;
    const headers = { "retry-after": retryAfterS };
    return problem(503, "request logs cannot be read now; try again", { headers });
  }
}

/** Returns the main domain and the sites whose records are looked at: records stay when a site is no longer linked. */
async function placesOf({ actor, param, read }: Call) {
  if (!actor.mayReadLogs) return forbidden("the operator does not let this user read logs");
  return read(async (work) => {
    const host = await hostNamed(work, actor, param("domain"));
    if (isProblem(host)) return host;
    if (host.main !== host.host)
      return invalid([
        { path: "domain", message: `the requests of a sub-domain are listed under ${host.main}` },
      ]);
    const deployments = await listDeployments(work, actor.customerId);
    return { domain: host.main, siteIds: deployments.map(({ id }) => id) };
  });
}

async function search(call: Call, logs: Logs, now: Date): Promise<Answer> {
  const places = await placesOf(call);
  if ("kind" in places) return places;
  const asked = parseAsked(call.query);
  if (isProblem(asked)) return asked;
  try {
    const found = await logs.find({ ...asked, ...places, nowMs: now.getTime() }, call.gone);
    return shown(found, call.query, places.domain);
  } catch (error) {
    if (!(error instanceof AccelError) || error.code !== "NOT_FOUND") throw error;
    const name = (["id", "follow", "after"] as const).find((one) => call.query.has(one));
    return name === "id"
      ? bad(name, `is no request_id of this service${hintOnId(call.query.get(name) ?? "")}`)
      : bad(name ?? "after", "is no cursor of this service");
  }
}

/** Visitors quote the only id that they were sent. */
function hintOnId(id: string): string {
  return decisionIdPattern.test(id.toLowerCase())
    ? "; an X-Accel-Decision is known to the host that sent it: accel-agent why"
    : "";
}

async function one(call: Call, logs: Logs): Promise<Answer> {
  const places = await placesOf(call);
  if ("kind" in places) return places;
  const requestId = call.param("request_id");
  const text = await logs.record({ ...places, requestId });
  return text === undefined
    ? notFound(`request ${JSON.stringify(requestId)} of ${places.domain}`)
    : whole(text);
}

/** Writes the text of `Requests` (wire/customer/requests.ts). */
function shown(
  { entries, scannedUntil, follow, next }: FoundRequests,
  query: URLSearchParams,
  domain: string,
) {
  const rest = `"scanned_until":${scannedUntil},"follow":${JSON.stringify(follow)}`;
  const text = `{"requests":[${entries.join(",")}],${rest}}`;
  if (next === undefined) return whole(text);
  const onward = new URLSearchParams(query);
  onward.set(next.name, next.cursor);
  const path = `/presentation-api/v1/requests/${domain}/`;
  return whole(text, { link: `<${path}?${onward.toString()}>; rel="next"` });
}

function whole(text: string, headers: Readonly<Record<string, string>> = {}): Answer {
  const pieces = async function* () {
    yield text;
  };
  return stream(pieces, headers);
}

const bad = (name: string, message: string): ProblemAnswer =>
  invalid([{ path: `?${name}`, message }]);

type Asked = Omit<FindQuery, "siteIds" | "domain" | "nowMs">;

function parseAsked(query: URLSearchParams): Asked | ProblemAnswer {
  const limit = query.get("limit") ?? String(requestsLimitDefault);
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > requestsLimitMax)
    return bad("limit", `must be 1 to ${requestsLimitMax}`);
  const times: { since?: number; until?: number } = {};
  for (const name of ["since", "until"] as const) {
    const text = query.get(name);
    if (text === null) continue;
    const seconds = parseQueryTime(text);
    if (seconds === undefined) return bad(name, `must be ${queryTimeForm}`);
    times[name] = seconds;
  }
  const places = (["after", "follow", "id"] as const).filter((name) => query.has(name));
  const [first = "", second] = places;
  if (second !== undefined) return bad(second, `cannot be given together with ${first}`);
  const filter = parseFilter(query);
  if (isProblem(filter)) return filter;
  const textOf = (name: string): string | undefined => query.get(name) ?? undefined;
  return {
    filter,
    limit: Number(limit),
    since: times.since,
    until: times.until,
    after: textOf("after"),
    follow: textOf("follow"),
    only: textOf("id"),
  };
}

/** Filters that hold for a record whose field is the text, or contains it. */
const textFilters = ["method", "cache", "verdict", "reason", "bot", "path", "path_is"] as const;

function parseFilter(query: URLSearchParams): RecordFilter | ProblemAnswer {
  const texts: Partial<Record<(typeof textFilters)[number], string>> = {};
  for (const name of textFilters) {
    const text = query.get(name);
    if (text === null) continue;
    const { enum: known } = requestParameters[name]?.schema ?? {};
    if (Array.isArray(known) && !known.includes(text))
      return bad(name, `must be one of ${known.join(", ")}`);
    if (text === "" || text.length > requestFilterCharsMax)
      return bad(name, `must have 1 to ${requestFilterCharsMax} characters`);
    texts[name] = text;
  }
  const [statusText, addressText] = [query.get("status"), query.get("address")];
  const status = parseStatusRange(statusText);
  if (statusText !== null && status === undefined)
    return bad("status", "must be a status as 404, or a class of them as 5xx");
  const parsed = addressText === null ? undefined : parseRange(addressText);
  if (parsed?.ok === false) return bad("address", parsed.reason);
  return { ...texts, status, address: parsed?.range };
}
