// The tables by which it is found out, and remembered, that a store lost what had been acknowledged.

import type { Generated } from "kysely";

export type LossTables = {
  /** One row each time that it was restored from a backup, or found to have lost something in a failover. */
  restores: {
    id: Generated<number>;
    when_backed_up: string;
    when_restored: string;
    epoch_before: string;
    clear_now: number;
    cause: "backup" | "failover";
    /** What is known of what was lost, in words. */
    detail: string | null;
  };
  /** On PostgreSQL: numbers of transactions by run of central (store-evidence.ts). */
  commit_marks: { run: string; no: number; at: string };
};

/** Added to the table of restores, which is older. */
export const commitMarks = `
  CREATE TABLE commit_marks (
    run text NOT NULL, no bigint NOT NULL, at text NOT NULL,
    CONSTRAINT commit_marks_pk PRIMARY KEY (run, no)
  );
  ALTER TABLE restores ADD COLUMN cause text NOT NULL DEFAULT 'backup';
  ALTER TABLE restores ADD COLUMN detail text;
`;
