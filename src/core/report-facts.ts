// What reports tell a customer about: the traffic of its domains, unreviewed bots, and the releases that its
// deployments run.

export type ReportedTraffic = {
  readonly domain: string;
  readonly requests: number;
  readonly hits: number;
  readonly blocked: number;
  readonly bytes: number;
  readonly originRequests: number;
  readonly originErrors: number;
};

/** The bots of one domain. */
export type ReportedBots = {
  readonly domain: string;
  /** The most requests first. */
  readonly bots: readonly {
    readonly name: string;
    readonly description: string | null;
    readonly requests: number;
  }[];
};

export type ReportedDeployment = {
  readonly name16: string;
  readonly tags: readonly string[];
  /** Null if its agent never stated it. */
  readonly version: string | null;
  readonly lastSeen: string | null;
  /** Whether it runs a release older than the newest. */
  readonly isBehind: boolean;
};
