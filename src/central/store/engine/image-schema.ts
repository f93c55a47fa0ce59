// What is stored of the variants of images, in the manner of schema.ts, and the step that makes it.

export type ImageTables = {
  /**
   * How many variants of a domain's images all instances made on a day (UTC), and how many, at least, they held back
   * because the day's number was used up. `when_told` null: nobody was told yet that some were held back.
   */
  image_days: {
    domain_id: number;
    day: string;
    made: number;
    blocked: number;
    when_told: string | null;
  };
  /** What an instance last told of a domain, from which its next report is subtracted. */
  image_marks: {
    deployment_site_id: number;
    instance_id: string;
    domain_id: number;
    /** When that agent began to count; empty if it did not say. */
    since: string;
    made: number;
    blocked: number;
    /** The UTC day of the agent then, and what fell on it. */
    day: string;
    day_made: number;
    day_blocked: number;
  };
};

/** Variants of images by day, and where the counts of each instance stand. */
export const imageDays = `
  CREATE TABLE image_days (
    domain_id integer → domains, day text NOT NULL, made bigint NOT NULL, blocked bigint NOT NULL, when_told text,
    CONSTRAINT image_days_pk PRIMARY KEY (domain_id, day)
  );
  INSERT INTO image_days (domain_id, day, made, blocked, when_told)
    SELECT domain_id, day, 0, blocked, when_told FROM image_blocks;
  DROP TABLE image_blocks;
  CREATE INDEX image_days_day ON image_days (day);
  CREATE INDEX image_days_untold ON image_days (day) WHERE when_told IS NULL AND blocked > 0;
  CREATE TABLE image_marks (
    deployment_site_id integer → deployment_sites, instance_id text NOT NULL, domain_id integer → domains,
    since text NOT NULL, made bigint NOT NULL, blocked bigint NOT NULL, day text NOT NULL, day_made bigint NOT NULL,
    day_blocked bigint NOT NULL,
    CONSTRAINT image_marks_pk PRIMARY KEY (deployment_site_id, instance_id, domain_id)
  );
`;
