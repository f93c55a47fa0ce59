// All endpoints of the customer API, by resource.

import type { DevloveRules } from "./devlove.ts";
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
import { policyEndpoints } from "./policies.ts";
import { serviceStatusEndpoints } from "./service-status.ts";
import { symmetricKeyEndpoints } from "./symmetric-keys.ts";
import { trialEndpoints } from "./trial.ts";
import { unreviewedBotEndpoints } from "./unreviewed-bots.ts";
import { userProfileEndpoints } from "./user-profile.ts";
import { viewsetImportEndpoints } from "./viewset-import.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Ports } from "./ports.ts";

/** Token buckets by key: takes one, or tells how many milliseconds until there is one. */
export type RateLimit = { take(key: string): number };

export type ResourceDeps = {
  readonly ports: Ports;
  readonly now: () => Date;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly rateLimit: (limit: {
    readonly burst: number;
    readonly perSecond: number;
    readonly keysMax: number;
  }) => RateLimit;
  readonly settings: {
    readonly trialsPerAddress: number;
    readonly trialsTotal: number;
    readonly marksPerSecond: number;
    readonly marksBurst: number;
    readonly devlove: DevloveRules;
  };
};

export function resourceEndpoints(deps: ResourceDeps): readonly Endpoint[] {
  return [
    ...trialEndpoints(deps),
    ...userProfileEndpoints(deps),
    ...customerEndpoints(deps),
    ...deploymentSiteEndpoints(deps),
    ...symmetricKeyEndpoints(),
    ...certificateEndpoints(deps),
    ...domainEndpoints(),
    ...devloveEndpoints(deps),
    ...activeViewsetEndpoints(deps),
    ...viewsetImportEndpoints(deps),
    ...botEndpoints(deps),
    ...policyEndpoints(),
    ...unreviewedBotEndpoints(),
    ...cacheClearEndpoints(deps),
    ...incomingLogsEndpoints(deps),
    ...serviceStatusEndpoints(deps),
    ...metricsConfEndpoints(),
  ];
}
