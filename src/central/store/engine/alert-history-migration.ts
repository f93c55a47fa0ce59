// The step of the store after which alerts that ended are kept, and a customer finds its own lines of the audit trail.

/**
 * What a customer sees of its alerts and of its audit trail. Ended alerts are kept with the numbers that they had.
 * Lines of the trail name the operation; those from before have none.
 */
export const alertHistory = `
  ALTER TABLE alerts ADD COLUMN deployment_site_id integer;
  CREATE INDEX alerts_customer_id ON alerts (customer_id, id);
  CREATE TABLE ended_alerts (
    id integer PRIMARY KEY, customer_id integer → customers, type text NOT NULL, domain_id integer → domains,
    edge text NOT NULL, deployment_site_id integer, when_fired text NOT NULL, when_ended text NOT NULL
  );
  CREATE INDEX ended_alerts_customer_id ON ended_alerts (customer_id, when_ended, id);
  CREATE INDEX ended_alerts_domain_id ON ended_alerts (domain_id);
  CREATE INDEX ended_alerts_when_ended ON ended_alerts (when_ended);
  ALTER TABLE audit ADD COLUMN operation text;
  CREATE INDEX audit_customer_id ON audit (customer_id, at, id);
`;
