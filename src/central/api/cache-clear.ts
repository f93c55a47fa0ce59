// `/clear-accelerator-cache/{domain}/`: a clear is journaled in a transaction, then awaited outside it until
// the connected agents have reported.

import { gives, lists } from "../../wire/customer/operation.ts";
import {
  clearItemsMax,
  readClearItems,
  type PlannedClear,
} from "../../core/patterns/clear-items.ts";
import {
  cacheClear,
  type ClearInstance,
  type ClearNamed,
  type ClearState,
  clearAnswerShape,
  clearRecordShape,
  type ClearRecord,
  clearStateShape,
} from "../../wire/customer/clear.ts";
import { waitParameter } from "../../wire/customer/proof.ts";
import { isTrue } from "../../wire/customer/shape.ts";
import { invalid, list, notFound, ok, type Answer, type ProblemAnswer } from "./http/answer.ts";
import { parseQueryTime, queryTimeForm } from "./http/query-time.ts";
import { askAgents, type DryRunAsked } from "./dry-run.ts";
import { forUsers, type EndpointCall, type Endpoint } from "./http/endpoint.ts";
import { isNewestFirst, orderParameter } from "./http/list-order.ts";
import { hostNamed, isProblem } from "./http/path-values.ts";
import { isAwaited, waitFault, waitMsOf, whileTrue } from "./proof-wait.ts";
import { readClear, readClearOn, type ClearProved } from "./clear-proof.ts";
import type { PatternCheck } from "../../base/pattern-check.ts";
import type { ResourceDeps } from "./deps.ts";
import type { Actor } from "../store/people/tokens.ts";
import type { HostRow } from "../store/content/domains.ts";
import { subDomainNames } from "../store/journal/site-state.ts";
import type { Work } from "../store/engine/work.ts";
import {
  clearSites,
  clearsOfCustomer,
  createClear,
  listClears,
  type ClearDeploymentState,
  type ClearInstanceState,
} from "../store/journal/clears.ts";

const path = "/clear-accelerator-cache/:domain/";

/** Clears whose proofs are read in one turn at the store. */
const clearsPerRead = 50;

const sinceParameter = {
  schema: { type: "string" },
  description: `Only clears that were given at this time or later: ${queryTimeForm}.`,
};

/** Returns the time as the store writes it, "" for none, or undefined for what is no time. */
function sinceOf(text: string | null): string | undefined {
  const seconds = text === null ? undefined : parseQueryTime(text);
  if (seconds !== undefined) return new Date(seconds * 1_000).toISOString();
  return text === null ? "" : undefined;
}

/**
 * The time to wait for the counts of what was removed, after every connected agent made the matches
 * invisible.
 */
const goneGraceMs = 500;

export function cacheClearEndpoints({ ports }: ResourceDeps): readonly Endpoint[] {
  return [clearEndpoint(ports), listEndpoint, readEndpoint(ports)];
}

function clearEndpoint(ports: ResourceDeps["ports"]): Endpoint {
  return forUsers({
    method: "POST",
    path,
    id: "clearCache",
    needs: { role: "clear", scope: "domain" },
    summary:
      "Clear URLs, prefixes, hosts or what matches patterns from all caches of a domain or one sub-domain",
    gives: gives(clearAnswerShape),
    refuses: [404],
    query: { wait: waitParameter },
    body: cacheClear,
    handle: async ({ actor, body, param, query, read, change }) => {
      const { url_path_patterns: patterns = [], dry_run: isDry, everything, soft, ...texts } = body;
      const named: ClearNamed = {
        ...texts,
        ...(isTrue(everything) && { everything: true }),
        ...(isTrue(soft) && { soft: true }),
      };
      const fault =
        waitFault(query) ??
        countFault(patterns, named) ??
        patternFault(patterns, (text) => ports.patterns.check(text));
      if (fault !== undefined) return fault;
      if (isTrue(isDry))
        return read(async (work) => {
          const host = await hostNamed(work, actor, param("domain"));
          if (isProblem(host)) return host;
          const planned = await plannedClear(work, host, patterns, named);
          if (isProblem(planned)) return planned;
          const only = host.host === host.main ? null : host.host;
          const sites = await clearSites(work, host.domainId);
          const asked = { domain: host.main, host: only, patterns, named, planned, sites };
          return ok(asked satisfies DryRunAsked);
        });
      const clear = async (work: Work): Promise<Answer> => {
        const host = await hostNamed(work, actor, param("domain"));
        if (isProblem(host)) return host;
        const planned = await plannedClear(work, host, patterns, named);
        if (isProblem(planned)) return planned;
        return ok({ clear_id: await createClear(work, { ...host, patterns, named, planned }) });
      };
      return change(clear, undefined, clearsOfCustomer(actor.customerId));
    },
    finish: async (call, answer) => {
      if (answer.kind !== "json") return answer;
      const asked = dryRunAskedOf(answer.body);
      if (asked === undefined) return settled(call, clearIdOf(answer.body), ports);
      return ok(await askAgents(ports.live, asked, waitMsOf(call.query) ?? 0, call.gone));
    },
  });
}

const listEndpoint = forUsers({
  method: "GET",
  path,
  id: "listCacheClears",
  needs: { role: "read", scope: "domain" },
  summary:
    "List past clears of a domain with its sub-domains, or of one sub-domain, with what was proved of each",
  gives: lists(clearRecordShape),
  refuses: [404],
  query: { since: sinceParameter, order: orderParameter },
  handle: async ({ actor, param, query, read }) => {
    const since = sinceOf(query.get("since"));
    if (since === undefined)
      return invalid([{ path: "?since", message: `must be ${queryTimeForm}` }]);
    const newest = isNewestFirst(query);
    if (typeof newest !== "boolean") return newest;
    const host = await read(async (work) => hostNamed(work, actor, param("domain")));
    if (isProblem(host)) return host;
    return list(async ({ after, limit }) => {
      const clears: ClearRecord[] = [];
      // Others have their turn at the store between a few clears and the next.
      for (let last = after; clears.length < limit;) {
        const range = {
          after: last,
          limit: Math.min(clearsPerRead, limit - clears.length),
          isNewestFirst: newest,
        };
        const some = await read(async (work) => listClears(work, host, range, since));
        clears.push(...some);
        if (some.length < range.limit) break;
        last = some.at(-1)?.id ?? last;
      }
      return clears;
    });
  },
});

const readEndpoint = ({ live }: ResourceDeps["ports"]) =>
  forUsers({
    method: "GET",
    path: `${path}:clear_id/`,
    id: "getCacheClear",
    needs: { role: "read", scope: "domain" },
    summary: "Read what has been proved of a clear so far",
    gives: gives(clearStateShape),
    refuses: [404],
    handle: async ({ actor, param, read }) => {
      const host = await read(async (work) => hostNamed(work, actor, param("domain")));
      if (isProblem(host)) return host;
      const found = await readClear(read, actor.customerId, param("clear_id"));
      return found === undefined || found.shown.domain !== host.host
        ? notFound(`clear ${JSON.stringify(param("clear_id"))} of ${host.host}`)
        : ok(encode(found, live));
    },
  });

/** Returns the question that `handle` above made, which is never stored. */
function dryRunAskedOf(body: unknown): DryRunAsked | undefined {
  return typeof body === "object" && body !== null && "sites" in body
    ? (body as DryRunAsked) // No other body has this member.
    : undefined;
}

/** Returns the id of a clear, which `handle` above stored in this form. */
function clearIdOf(body: unknown): string {
  return typeof body === "object" && body !== null && "clear_id" in body
    ? String(body.clear_id)
    : "";
}

function countFault(patterns: readonly string[], named: ClearNamed): ProblemAnswer | undefined {
  const { urls = [], prefixes = [], hosts = [], tags = [], everything } = named;
  const count = patterns.length + urls.length + prefixes.length + hosts.length + tags.length;
  if (count > clearItemsMax)
    return invalid([
      {
        path: "",
        message: `names ${count} things, at most ${clearItemsMax} are allowed in one clear`,
      },
    ]);
  if (count > 0 || everything !== undefined) return undefined;
  const names = "urls, prefixes, tags, hosts, url_path_patterns or everything";
  return invalid([{ path: "", message: `names nothing to clear; give ${names}` }]);
}

/** Reads what is named, with the hosts of the domain as they are now. */
async function plannedClear(
  work: Work,
  { domainId, main, host }: HostRow,
  patterns: readonly string[],
  { everything, soft, ...texts }: ClearNamed,
): Promise<PlannedClear | ProblemAnswer> {
  const only = host === main ? null : host;
  const names = new Set([main, ...(await subDomainNames(work.tx, domainId))]);
  const given = { ...texts, patterns, everything: everything === true, soft: soft === true };
  const read = readClearItems(given, only, (name) =>
    only === null ? names.has(name) : name === only,
  );
  if (read.ok) return read.clear;
  return invalid(
    read.faults.map(({ kind, at, message, suggestion }) => ({
      path: `/${kind}/${at}`,
      message: `${JSON.stringify(texts[kind]?.[at])} ${message}`,
      ...(suggestion !== undefined && { did_you_mean: suggestion }),
    })),
  );
}

function patternFault(
  patterns: readonly string[],
  check: PatternCheck["check"],
): ProblemAnswer | undefined {
  const errors = patterns.flatMap((pattern, at) => {
    const fault = check(pattern);
    if (fault === undefined) return [];
    const { position, message: reason, suggestion } = fault;
    const message = `the pattern ${JSON.stringify(pattern)} ${reason}`;
    const meant = suggestion === undefined ? {} : { did_you_mean: suggestion };
    return [{ path: `/url_path_patterns/${at}`, message, pattern, position, ...meant }];
  });
  return errors.length === 0 ? undefined : invalid(errors);
}

/** Waits until every connected agent has told, or the time is up, and returns what is proved. */
async function settled(
  { actor, query, read, gone }: EndpointCall<unknown, Actor>,
  clearId: string,
  { live, receipts }: ResourceDeps["ports"],
): Promise<Answer> {
  const waitMs = waitMsOf(query) ?? 0;
  const signal = AbortSignal.any([gone, AbortSignal.timeout(waitMs)]);
  const awaited =
    (isOpen: (one: ClearInstanceState) => boolean) =>
    (one: ClearDeploymentState): boolean =>
      isAwaited(one, isOpen, live);
  const isPending = awaited(({ state }) => state === "pending");
  const isUntold = awaited(({ isProofWhole }) => !isProofWhole);
  const until = async (
    isOpen: (one: ClearDeploymentState) => boolean,
    end: AbortSignal,
  ): Promise<ClearProved | undefined> =>
    whileTrue(
      ({ deployments }) => deployments.some(isOpen),
      async (before?: ClearProved) =>
        before === undefined
          ? readClear(read, actor.customerId, clearId)
          : readClearOn(read, before, isOpen),
      receipts,
      end,
    );
  let found = await until(isPending, signal);
  const isTold = found !== undefined && !found.deployments.some(isPending);
  if (found !== undefined && isTold && found.deployments.some(isUntold)) {
    const grace = AbortSignal.any([signal, AbortSignal.timeout(goneGraceMs)]);
    found = await until(isUntold, grace);
  }
  return found === undefined ? notFound(`clear ${clearId}`) : ok(encode(found, live));
}

function encode(
  { deployments, shown }: ClearProved,
  live: ResourceDeps["ports"]["live"],
): ClearState {
  return {
    ...shown,
    deployments: deployments.map(({ instances, ...deployment }) => ({
      ...deployment,
      instances: instances.map(({ isProofWhole: _isProofWhole, ...one }) =>
        one.state === "pending"
          ? { ...one, ...linkOf(deployment.deployment_site_id, one.instance_id, live) }
          : one,
      ),
    })),
  };
}

/** Says of an instance that has a channel whether it is connected, and when it was heard. */
function linkOf(
  siteId: number,
  instance: string,
  live: ResourceDeps["ports"]["live"],
): Pick<ClearInstance, "connected" | "silent_s"> {
  const silentMs = live.silentMs(siteId, instance);
  return {
    ...(live.isLive(siteId, instance) && { connected: true }),
    ...(silentMs !== undefined && { silent_s: Math.round(silentMs / 1_000) }),
  };
}
