// The tables of alerts, in the manner of schema.ts.

import type { Generated } from "kysely";

export type AlertTables = {
  /** Backends in trouble as one agent sees them. A row goes when there is no trouble any more. */
  backend_troubles: {
    deployment_site_id: number;
    instance_id: string;
    domain_id: number;
    kind: "slow" | "unreachable";
    /** Since when no sample was good. */
    since: string;
    last_bad: string;
    /** Since when its samples are good; null if the last one was bad. */
    good_since: string | null;
    /** The requests of the last bad sample, and those of them that were slow or failed. */
    requests: number;
    bad_requests: number;
  };
  /** Alerts that fire; a row goes when it is resolved. `edge` is empty for what is told by domain only. */
  alerts: {
    id: Generated<number>;
    customer_id: number;
    type: string;
    domain_id: number;
    edge: string;
    when_fired: string;
    /** The only site whose hosts see the trouble; null: there are several, or it was not noted. */
    deployment_site_id: Generated<number | null>;
  };
  /** Alerts that were resolved, under the ids that they had, until their retention. */
  ended_alerts: {
    id: number;
    customer_id: number;
    type: string;
    domain_id: number;
    edge: string;
    deployment_site_id: number | null;
    when_fired: string;
    when_ended: string;
  };
};
