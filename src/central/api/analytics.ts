// `/analytics/{domain}/`: what the requests of a domain add up to.

import { AccelError } from "../../core/faults.ts";
import {
  bucketOf,
  bucketSeconds,
  finenesses,
  usualFineness,
  type Fineness,
} from "../../core/analytics/time-buckets.ts";
import {
  analyticsBy,
  analyticsParameters,
  analyticsShape,
  analyticsSpansMax,
  topLists,
  type AnalyticsBy,
} from "../../wire/customer/analytics.ts";
import { gives } from "../../wire/customer/operation.ts";
import { listDeployments } from "../store/content/deployments.ts";
import type { Actor } from "../store/people/tokens.ts";
import type { ResourceDeps } from "./deps.ts";
import {
  forbidden,
  invalid,
  problem,
  stream,
  type Answer,
  type ProblemAnswer,
} from "./http/answer.ts";
import { forUsers, type Endpoint, type EndpointCall } from "./http/endpoint.ts";
import { hostNamed, isProblem } from "./http/path-values.ts";
import { parseQueryTime, queryTimeForm } from "./http/query-time.ts";

export function analyticsEndpoints({ ports, now }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/analytics/:domain/",
      id: "getAnalytics",
      needs: { role: "read", scope: "domain" },
      summary: "Read what the requests of a domain add up to, in all and by minute, hour or day",
      gives: gives(analyticsShape),
      refuses: [400, 403, 404, 503],
      query: analyticsParameters,
      handle: async (call) => readAnalytics(call, ports.analytics, now().getTime()),
    }),
  ];
}

const retryAfterS = "2";

type Asked = {
  readonly since: number;
  readonly until: number;
  readonly step: Fineness;
  readonly by: AnalyticsBy | undefined;
};

const bad = (name: string, message: string): ProblemAnswer =>
  invalid([{ path: `?${name}`, message }]);

function parseAsked(query: URLSearchParams, nowMs: number): Asked | ProblemAnswer {
  const timeOf = (name: string, usual: number): number | undefined => {
    const text = query.get(name);
    return text === null ? usual : parseQueryTime(text);
  };
  const until = timeOf("until", nowMs / 1e3);
  if (until === undefined) return bad("until", `must be ${queryTimeForm}`);
  const since = timeOf("since", Math.max(until - 86_400, 0));
  if (since === undefined) return bad("since", `must be ${queryTimeForm}`);
  if (since > until) return bad("since", "must not be later than until");
  const byText = query.get("by");
  const by = analyticsBy.find((one) => one === byText);
  if (byText !== null && by === undefined)
    return bad("by", `must be one of ${analyticsBy.join(", ")}`);
  const isTop = by !== undefined && by in topLists;
  const stepText = query.get("step");
  const usual = usualFineness(until - since);
  const step =
    stepText === null
      ? isTop && usual === "minute"
        ? "hour"
        : usual
      : finenesses.find((one) => one === stepText);
  if (step === undefined) return bad("step", `must be one of ${finenesses.join(", ")}`);
  if (isTop && step === "minute")
    return bad("step", `must be hour or day for ${by}, which is not kept by the minute`);
  const spans = (bucketOf(until, step) - bucketOf(since, step)) / bucketSeconds[step] + 1;
  if (spans > analyticsSpansMax)
    return bad("step", `gives ${spans} spans, and one answer has at most ${analyticsSpansMax}`);
  return { since, until, step, by };
}

async function readAnalytics(
  { actor, param, query, read }: EndpointCall<unknown, Actor>,
  analytics: ResourceDeps["ports"]["analytics"],
  nowMs: number,
): Promise<Answer> {
  const asked = parseAsked(query, nowMs);
  const found = await read(async (work) => {
    const host = await hostNamed(work, actor, param("domain"));
    if (isProblem(host)) return host;
    if (host.main !== host.host)
      return invalid([
        { path: "domain", message: `the requests of a sub-domain count under ${host.main}` },
      ]);
    const deployments = await listDeployments(work, actor.customerId);
    return { domain: host.main, deployments };
  });
  if ("kind" in found) return found;
  if (isProblem(asked)) return asked;
  if (asked.by === "top_addresses" && !actor.mayReadLogs)
    return forbidden("the operator does not let this user read logs, so no addresses either");
  const { domain, deployments } = found;
  const linked = deployments.filter(({ domains }) => domains.includes(domain));
  try {
    const answer = await analytics.read({
      ...asked,
      domain,
      siteIds: deployments.map(({ id }) => id),
      linkedSiteIds: linked.map(({ id }) => id),
      nowMs,
    });
    if (answer.kind === "not_kept")
      return bad("since", notKept(asked, new Date(answer.since * 1e3).toISOString()));
    const pieces = async function* () {
      yield answer.text;
    };
    return stream(pieces);
  } catch (error) {
    if (!(error instanceof AccelError) || error.code !== "LOGS_UNAVAILABLE") throw error;
    const headers = { "retry-after": retryAfterS };
    return problem(503, "numbers cannot be read now; try again", { headers });
  }
}

function notKept({ step, by }: Asked, since: string): string {
  const what = by !== undefined && by in topLists ? `${by} by the ${step}` : `every ${step}`;
  return `must be ${since} or later, since when ${what} is kept; a larger step reaches further back`;
}
