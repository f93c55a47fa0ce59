// What is stored of classes of unknown bots, in the manner of schema.ts, and the step that makes it.

import type { BotClassKey } from "../../../wire/customer/bot-classes.ts";

/** What a policy says of each class: 1, 0, or null if it says nothing. */
export type BotClassColumns = { [Key in BotClassKey]: number | null };

export type BotClassTables = {
  /** Where the journal of a deployment site last told what its policies say of classes. A site that never had any has no row. */
  told_classes: {
    deployment_site_id: number;
    seq: number;
    /** How many times that was told again since the policies last changed. */
    repeats: number;
  };
};

/** Policies for classes of unknown bots. */
export const botClassPolicies = `
  ALTER TABLE general_policies ADD COLUMN unknown_crawlers_can_access integer;
  ALTER TABLE general_policies ADD COLUMN unknown_feeds_can_access integer;
  ALTER TABLE general_policies ADD COLUMN unknown_libraries_can_access integer;
  ALTER TABLE domain_policies ADD COLUMN unknown_crawlers_can_access integer;
  ALTER TABLE domain_policies ADD COLUMN unknown_feeds_can_access integer;
  ALTER TABLE domain_policies ADD COLUMN unknown_libraries_can_access integer;
  CREATE TABLE told_classes (
    deployment_site_id integer → deployment_sites, seq bigint NOT NULL, repeats integer NOT NULL,
    CONSTRAINT told_classes_pk PRIMARY KEY (deployment_site_id)
  );
`;
