// `/fleet/`: the customer's deployment sites with the hosts that were seen there: how each is in touch, and what it holds back.

import { isBehind } from "../../core/package-version.ts";
import { classesUnknown } from "../../core/serving/classes-unknown.ts";
import { warningCodes } from "../../base/warning-codes.ts";
import { fleetShape, type FleetInstance, type FleetSite } from "../../wire/customer/fleet.ts";
import { gives } from "../../wire/customer/operation.ts";
import {
  fleetSites,
  type StandingInstance,
  type StandingSite,
} from "../store/content/fleet-sites.ts";
import type { PageRange } from "../store/engine/work.ts";
import { newestPackage } from "../store/packages/packages.ts";
import type { Actor } from "../store/people/tokens.ts";
import type { Live, ResourceDeps } from "./deps.ts";
import { stream } from "./http/answer.ts";
import { forUsers, type Endpoint, type EndpointCall } from "./http/endpoint.ts";
import { isLately } from "./service-status.ts";

/** The sites that are read in one transaction. */
const sitesAtOnce = 50;
/** The most warnings that are shown of an instance. */
const warningsShown = 50;

export function fleetEndpoints({ ports, now }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/fleet/",
      id: "getFleet",
      needs: { role: "read", scope: "domain" },
      summary: "Read which hosts run the deployment sites, and how each of them stands",
      gives: gives(fleetShape),
      handle: async (call) => {
        const newest = await call.read(async ({ tx }) => newestPackage(tx));
        const facts = {
          live: ports.live,
          newest: newest?.version,
          nowMs: now().getTime(),
          isWhole: call.actor.domains === null,
        };
        return stream(() => pieces(call, facts));
      },
    }),
  ];
}

type Facts = {
  readonly live: Pick<Live, "sinceMs" | "isLive" | "isInTouch">;
  readonly newest: string | undefined;
  readonly nowMs: number;
  /** Whether the caller may see what concerns any domain. */
  readonly isWhole: boolean;
};

/** Yields the text of a `Fleet`, a page of sites at a time. */
async function* pieces(
  { actor, read }: EndpointCall<unknown, Actor>,
  facts: Facts,
): AsyncGenerator<string, void, undefined> {
  const heardSince = new Date(facts.live.sinceMs).toISOString();
  const beginning = `{"heard_since":"${heardSince}","sites":[`;
  let separator = beginning;
  for (let after: number | undefined = 0; after !== undefined;) {
    const range: PageRange = { after, limit: sitesAtOnce };
    const sites: readonly StandingSite[] = await read(async (work) =>
      fleetSites(work, actor, range),
    );
    for (const { id, name16, tags, domains, instances } of sites) {
      const site: FleetSite = {
        deployment_site_id: id,
        name16,
        deployment_tags: tags.join(","),
        domains: [...domains],
        instances: instances
          .toSorted((a, b) => (a.instanceId < b.instanceId ? -1 : 1))
          .map((one) => shownInstance(id, one, facts)),
      };
      yield separator + JSON.stringify(site);
      separator = ",";
    }
    after = sites.length === sitesAtOnce ? sites.at(-1)?.id : undefined;
  }
  yield separator === beginning ? `${beginning}]}` : "]}";
}

/** Pure. */
function shownInstance(siteId: number, one: StandingInstance, facts: Facts): FleetInstance {
  const { live, newest, nowMs, isWhole } = facts;
  const { instanceId, agentVersion, lastSeen, logsConfirmedAt } = one;
  const behind = agentVersion === undefined ? undefined : isBehind(agentVersion, newest);
  const polls = live.isInTouch(siteId, instanceId) ? "polling" : "none";
  return {
    instance_id: instanceId,
    host: one.host ?? null,
    ...(agentVersion !== undefined && { agent_version: agentVersion }),
    ...(behind !== undefined && { is_behind: behind }),
    link: live.isLive(siteId, instanceId) ? "channel" : polls,
    last_seen: lastSeen,
    is_log_agent_reporting_data: isLately(lastSeen, nowMs) && isLately(logsConfirmedAt, nowMs),
    log_lag_seconds:
      logsConfirmedAt === undefined
        ? null
        : Math.max(0, Math.round((nowMs - Date.parse(logsConfirmedAt)) / 1_000)),
    entries_behind: one.entriesBehind ?? null,
    warnings: warningsOf(one).map(({ code, text, hint }) => {
      if (isWhole) return { code, text, hint };
      const general = generalWarnings.get(code);
      return { code, text: general?.means ?? code, hint: general?.todo ?? "" };
    }),
  };
}

type Shown = FleetInstance["warnings"][number];

/** What central finds stands first. */
function warningsOf({ refusesClasses, warnings }: StandingInstance): readonly Shown[] {
  // What no agent can report itself: one that knows nothing of classes.
  const { code, ofHost: text, hint } = classesUnknown;
  return [...(refusesClasses ? [{ code, text, hint }] : []), ...warnings].slice(0, warningsShown);
}

/** The texts of a warning name what it concerns, which may be a domain out of reach; these name nothing. */
const generalWarnings: ReadonlyMap<string, { readonly means: string; readonly todo: string }> =
  new Map(Object.entries(warningCodes));
