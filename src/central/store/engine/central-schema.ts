// The tables by which several centrals at one store know of each other, in the manner of schema.ts, and the step that makes them.

import type { Generated } from "kysely";

export type CentralTables = {
  /** The centrals that work on this store. A row whose beat stands still is of one that is gone. */
  centrals: {
    id: string;
    /** The address that it listens at, for people. */
    address: string;
    version: string;
    when_started: string;
    /** Opens with the key of the store's secrets: all centrals must have the same. */
    key_proof: string;
    beat: number;
    /** The last step of the store that its release knows; null: a release from before `store_steps`. */
    level: string | null;
    /** What it tells of its settings (src/central/settings/alike.ts), as JSON; null: a release from before, which tells nothing. */
    settings: string | null;
  };
  /** Which central holds which agent's channel. Of two of one instance of an agent the one with the higher id is the newer. */
  channels: {
    id: Generated<number>;
    deployment_site_id: number;
    instance_id: string;
    boot_id: string;
    central: string;
  };
  /** Work that one central at a time does for all. */
  central_jobs: { job: string; central: string };
  /** What steps that were done to the store need (store-steps.ts): the name of the step that a release must know, "" for none. */
  store_steps: { name: string; needs: string };
};

/**
 * `shut_count` grows with each order to close the channels of a site. No row here refers to another table: a channel is written and removed by the thousand, and
 * would lock its site's row each time.
 */
export const centrals = `
  ALTER TABLE deployment_sites ADD COLUMN shut_count integer NOT NULL DEFAULT 0;
  CREATE TABLE centrals (
    id text NOT NULL, address text NOT NULL, version text NOT NULL, when_started text NOT NULL,
    key_proof text NOT NULL, beat bigint NOT NULL,
    CONSTRAINT centrals_pk PRIMARY KEY (id)
  );
  CREATE TABLE channels (
    id $id, deployment_site_id integer NOT NULL, instance_id text NOT NULL, boot_id text NOT NULL, central text NOT NULL
  );
  CREATE INDEX channels_central ON channels (central);
  CREATE TABLE central_jobs (
    job text NOT NULL, central text NOT NULL,
    CONSTRAINT central_jobs_pk PRIMARY KEY (job)
  );
`;

export const centralSettings = `
  ALTER TABLE centrals ADD COLUMN settings text;
`;
