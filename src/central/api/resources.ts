// All endpoints of the customer API, by subject.

import type { ResourceDeps } from "./deps.ts";
import { activeViewsetEndpoints } from "./active-viewset.ts";
import { botEndpoints } from "./bots.ts";
import { cacheClearEndpoints } from "./cache-clear.ts";
import { certificateEndpoints } from "./certificates.ts";
import { customerEndpoints } from "./customers.ts";
import { deploymentSiteEndpoints } from "./deployment-sites.ts";
import { devloveEndpoints } from "./devlove.ts";
import { domainEndpoints } from "./domains.ts";
import { incomingLogsEndpoints } from "./incoming-logs.ts";
import { metricsConfEndpoints } from "./metrics-conf.ts";
import { packageEndpoints } from "./packages.ts";
import { monitorChannelEndpoints } from "./monitor-channels.ts";
import { notificationEndpoints } from "./notifications.ts";
import { policyEndpoints } from "./policies.ts";
import { serviceStatusEndpoints } from "./service-status.ts";
import { symmetricKeyEndpoints } from "./symmetric-keys.ts";
import { recoveryEndpoints } from "./token-recovery.ts";
import { trialEndpoints } from "./trial.ts";
import { unreviewedBotEndpoints } from "./unreviewed-bots.ts";
import { userProfileEndpoints } from "./user-profile.ts";
import { viewsetImportEndpoints } from "./viewset-import.ts";
import type { Endpoint } from "./http/endpoint.ts";

/** A heading of the documents and what stands below it. */
export type Subject = { readonly title: string; readonly endpoints: readonly Endpoint[] };

/** In the order of the documents. */
export function subjects(deps: ResourceDeps): readonly Subject[] {
  return [
    {
      title: "Authentication token",
      endpoints: [...trialEndpoints(deps), ...recoveryEndpoints(deps)],
    },
    { title: "User profile", endpoints: userProfileEndpoints(deps) },
    { title: "Customer", endpoints: customerEndpoints(deps) },
    { title: "Deployment site", endpoints: deploymentSiteEndpoints(deps) },
    { title: "Domain", endpoints: domainEndpoints() },
    { title: "Incoming logs", endpoints: incomingLogsEndpoints(deps) },
    { title: "Symmetric encryption keys", endpoints: symmetricKeyEndpoints() },
    { title: "Accelerator package", endpoints: packageEndpoints(deps) },
    { title: "Certificates", endpoints: certificateEndpoints(deps) },
    { title: "Devlove files", endpoints: devloveEndpoints(deps) },
    { title: "Viewset versions", endpoints: activeViewsetEndpoints(deps) },
    { title: "Import", endpoints: viewsetImportEndpoints(deps) },
    { title: "Service status", endpoints: serviceStatusEndpoints(deps) },
    { title: "Bots", endpoints: botEndpoints(deps) },
    { title: "Unreviewed bots", endpoints: unreviewedBotEndpoints() },
    { title: "Bot access policy", endpoints: policyEndpoints() },
    { title: "Cache clearing", endpoints: cacheClearEndpoints(deps) },
    { title: "Metrics configuration", endpoints: metricsConfEndpoints(deps) },
    { title: "Monitor notification channels", endpoints: monitorChannelEndpoints(deps) },
    { title: "Notifications", endpoints: notificationEndpoints() },
  ];
}

export function resourceEndpoints(deps: ResourceDeps): readonly Endpoint[] {
  return subjects(deps).flatMap(({ endpoints }) => endpoints);
}
