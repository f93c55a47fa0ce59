// All endpoints of the customer API, by subject.

import type { ResourceDeps } from "./deps.ts";
import { activeViewsetEndpoints } from "./active-viewset.ts";
import { botEndpoints } from "./bots.ts";
import { cacheClearEndpoints } from "./cache-clear.ts";
import { certificateOrderEndpoints } from "./certificate-orders.ts";
import { certificateEndpoints } from "./certificates.ts";
import { customerEndpoints } from "./customers.ts";
import { deploymentSiteEndpoints } from "./deployment-sites.ts";
import { devloveEndpoints } from "./devlove.ts";
import { domainEndpoints } from "./domains.ts";
import { enrolmentEndpoints } from "./enrolments.ts";
import { alertEndpoints } from "./alerts.ts";
import { auditEndpoints } from "./audit-trail.ts";
import { eventEndpoints } from "./events.ts";
import { fleetEndpoints } from "./fleet.ts";
import { analyticsEndpoints } from "./analytics.ts";
import { imageVariantEndpoints } from "./image-variants.ts";
import { incomingLogsEndpoints } from "./incoming-logs.ts";
import { metricsConfEndpoints } from "./metrics-conf.ts";
import { packageEndpoints } from "./packages.ts";
import { monitorChannelEndpoints } from "./monitor-channels.ts";
import { notificationEndpoints } from "./notifications.ts";
import { policyEndpoints } from "./policies.ts";
import { sessionEndpoints } from "./session.ts";
import { requestEndpoints } from "./requests.ts";
import { serviceStatusEndpoints } from "./service-status.ts";
import { symmetricKeyEndpoints } from "./symmetric-keys.ts";
import { recoveryEndpoints } from "./token-recovery.ts";
import { tokenEndpoints } from "./tokens.ts";
import { trialEndpoints } from "./trial.ts";
import { unreviewedBotEndpoints } from "./unreviewed-bots.ts";
import { userProfileEndpoints } from "./user-profile.ts";
import { viewsetChangesEndpoints } from "./viewset-changes.ts";
import { viewsetImportEndpoints } from "./viewset-import.ts";
import type { Endpoint } from "./http/endpoint.ts";

type SubjectRow = {
  readonly title: string;
  /** One sentence that says what the subject is about. */
  readonly about: string;
  readonly endpoints: (deps: ResourceDeps) => readonly Endpoint[];
};

/** The subjects in the order of the documents. */
const rows: readonly SubjectRow[] = [
  {
    title: "Authentication token",
    about:
      "How a customer begins: a trial makes a user with a token. A lost token is replaced by mail. Further tokens may do less.",
    endpoints: (deps) => [
      ...trialEndpoints(deps),
      ...recoveryEndpoints(deps),
      ...tokenEndpoints(deps),
      ...sessionEndpoints(deps),
    ],
  },
  {
    title: "User profile",
    about: "A user reads and edits its own profile.",
    endpoints: userProfileEndpoints,
  },
  {
    title: "Customer",
    about: "The owners of deployment sites and domains.",
    endpoints: customerEndpoints,
  },
  {
    title: "Deployment site",
    about:
      "One installation of an accelerator: the secret that its agent signs in with, and the codes with which hosts join it.",
    endpoints: (deps) => [...deploymentSiteEndpoints(deps), ...enrolmentEndpoints(deps)],
  },
  {
    title: "Domain",
    about: "What is accelerated: main domains with their sub-domains, linked to deployment sites.",
    endpoints: domainEndpoints,
  },
  {
    title: "Incoming logs",
    about: "Every request that visitors made, as the accelerators recorded it.",
    endpoints: (deps) => [...incomingLogsEndpoints(deps), ...requestEndpoints(deps)],
  },
  {
    title: "Analytics",
    about:
      "What the requests of a domain add up to, long after their records are gone; and the variants of its images by day.",
    endpoints: (deps) => [...analyticsEndpoints(deps), ...imageVariantEndpoints()],
  },
  {
    title: "Symmetric encryption keys",
    about: "The keys with which the certificates of a deployment site are sealed.",
    endpoints: symmetricKeyEndpoints,
  },
  {
    title: "Accelerator package",
    about: "Versions of the accelerator to download, and for publishers to upload.",
    endpoints: packageEndpoints,
  },
  {
    title: "Certificates",
    about:
      "Certificate chains with their private keys, for HTTPS at a deployment site: uploaded, or ordered by ACME.",
    endpoints: (deps) => [...certificateEndpoints(deps), ...certificateOrderEndpoints()],
  },
  {
    title: "Devlove files",
    about:
      "How a domain is served: configuration that is stored with a viewset version, and its validator.",
    endpoints: devloveEndpoints,
  },
  {
    title: "Viewset versions",
    about: "Versions of a domain's files and devlove, one of which is active.",
    endpoints: (deps) => [...activeViewsetEndpoints(deps), ...viewsetChangesEndpoints(deps)],
  },
  {
    title: "Import",
    about: "New viewset versions from files that lie on a deployment.",
    endpoints: viewsetImportEndpoints,
  },
  {
    title: "Service status",
    about: "Whether the deployments of a domain report.",
    endpoints: serviceStatusEndpoints,
  },
  {
    title: "Fleet",
    about: "The hosts of all deployment sites, and hints when something of the customer changed.",
    endpoints: (deps) => [...fleetEndpoints(deps), ...eventEndpoints(deps)],
  },
  {
    title: "Audit",
    about: "Who changed what.",
    endpoints: auditEndpoints,
  },
  {
    title: "Bots",
    about: "Bad bots and VIP bots: addresses and ranges, marked, removed, checked and listed.",
    endpoints: botEndpoints,
  },
  {
    title: "Unreviewed bots",
    about: "Bots that visited from addresses in no list.",
    endpoints: unreviewedBotEndpoints,
  },
  {
    title: "Bot access policy",
    about: "The rules for bots that are in no list.",
    endpoints: policyEndpoints,
  },
  {
    title: "Cache clearing",
    about: "Clears whatever matches patterns from the caches, with proof.",
    endpoints: cacheClearEndpoints,
  },
  {
    title: "Metrics configuration",
    about: "Scrape configuration for Prometheus.",
    endpoints: metricsConfEndpoints,
  },
  {
    title: "Monitor notification channels",
    about: "Where alerts go: chat hooks and e-mail addresses.",
    endpoints: monitorChannelEndpoints,
  },
  {
    title: "Notifications",
    about: "Subscriptions to reports and alerts by e-mail, and the alerts themselves.",
    endpoints: (deps) => [...notificationEndpoints(), ...alertEndpoints(deps)],
  },
];

/** A heading of the documents and the endpoints below it. */
export type Subject = Omit<SubjectRow, "endpoints"> & { readonly endpoints: readonly Endpoint[] };

export function subjects(deps: ResourceDeps): readonly Subject[] {
  return rows.map((row) => ({ ...row, endpoints: row.endpoints(deps) }));
}

export function resourceEndpoints(deps: ResourceDeps): readonly Endpoint[] {
  return subjects(deps).flatMap(({ endpoints }) => endpoints);
}
