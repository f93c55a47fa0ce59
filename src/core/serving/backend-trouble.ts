// A backend in trouble: it answers too slowly, or not at all.

/** One deployment's view of a domain's backend. */
export type BackendTrouble = {
  readonly kind: "slow" | "unreachable";
  readonly customerId: number;
  readonly domainId: number;
  readonly domain: string;
  readonly deploymentSiteId: number;
  /** The server name of the edge, or the name of the deployment if it states none. */
  readonly edge: string;
  /** ISO 8601. */
  readonly since: string;
  readonly lastBad: string;
  readonly isGoodNow: boolean;
  readonly requests: number;
  readonly badRequests: number;
};
