// What the agent tells about itself: one object for `status`, the status page and /readyz.

import type { ToldWarning } from "../../base/health.ts";

/** A version of central's that is in force on this host. */
export type VersionFacts = {
  readonly viewset_name: string;
  readonly viewset_id: number;
  readonly since: string;
  /** Where the host stands with the version that central wants. */
  readonly standing: string;
  readonly on_trial_until: string | null;
};

export type AgentStatus = {
  readonly program: "accel-agent";
  readonly version: string;
  readonly name16: string;
  readonly started: string;
  readonly ready: boolean;
  readonly serving: {
    readonly state_version: number;
    readonly workers: number;
    readonly listen: string;
    /** The listener of HTTPS; null if it is not served. */
    readonly tls_listen: string | null;
    readonly domains: readonly {
      readonly domain: string;
      readonly hosts: readonly string[];
      /** Digest of the manifest in force, or where the site comes from instead. */
      readonly viewset: string;
      readonly version: VersionFacts | null;
      readonly files: number | null;
      readonly bots: {
        readonly mode: string;
        readonly unknown_bots: "allowed" | "blocked" | "blocked by default";
      };
    }[];
  };
  /** The facts of each part by its name, such as link, sets, cache and spool. */
  readonly parts: Readonly<Record<string, unknown>>;
  readonly warnings: readonly ToldWarning[];
};
