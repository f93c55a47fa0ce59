// `/alerts/`: the alerts of the monitor, as whoever is subscribed to them was told.

import {
  alertDaysDefault,
  alertDaysMax,
  alertParameters,
  alertsMax,
  alertsShape,
  type Alert,
} from "../../wire/customer/alert.ts";
import {
  slowBackendType,
  staleListType,
  unreachableBackendType,
} from "../../wire/customer/notifications.ts";
import { staleListsText } from "../../core/stale-list-words.ts";
import { gives } from "../../wire/customer/operation.ts";
import { staleSources, type StaleSource } from "../store/bots/bot-sources.ts";
import { toldAlerts, type AlertTold } from "../store/notices/alerts.ts";
import type { ResourceDeps } from "./deps.ts";
import { invalid, ok } from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import { parseQueryTime, queryTimeForm } from "./http/query-time.ts";

const dayS = 86_400;

export function alertEndpoints({ now }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/alerts/",
      id: "listAlerts",
      needs: { role: "read", scope: "domain" },
      summary: "List the alerts that go on, and those that ended lately",
      gives: gives(alertsShape),
      refuses: [400],
      query: alertParameters,
      handle: async ({ actor, query, read }) => {
        const bad = (message: string) => invalid([{ path: "?since", message }]);
        const nowS = now().getTime() / 1_000;
        const text = query.get("since");
        const since = text === null ? nowS - alertDaysDefault * dayS : parseQueryTime(text);
        if (since === undefined) return bad(`must be ${queryTimeForm}`);
        if (since < nowS - alertDaysMax * dayS)
          return bad(`must be at most ${alertDaysMax} days ago; alerts are kept no longer`);
        const from = new Date(since * 1_000).toISOString();
        const { alerts, stale } = await read(async (work) => ({
          alerts: await toldAlerts(work, actor, from, alertsMax),
          stale: await staleSources(work, actor.customerId),
        }));
        return ok(alerts.map((alert) => shownAlert(alert, stale)));
      },
    }),
  ];
}

/** Shows an alert. `stale`: the lists that do not come now; an alert that ended names none. Pure. */
function shownAlert(
  { id, type, domain, edge, deploymentSiteId, ...times }: AlertTold,
  stale: readonly StaleSource[],
): Alert {
  const lists = times.whenEnded === null ? stale.filter((list) => list.domain === domain) : [];
  const texts: Readonly<Record<string, string>> = {
    [slowBackendType]: `the backend of ${domain} answers slowly`,
    [unreachableBackendType]: `${edge} cannot reach the backend of ${domain}`,
    [staleListType]: staleListsText(domain, lists),
  };
  const text = texts[type] ?? type;
  return {
    id,
    type,
    domain,
    deployment_site_id: deploymentSiteId,
    text,
    when_began: times.whenFired,
    when_ended: times.whenEnded,
  };
}
