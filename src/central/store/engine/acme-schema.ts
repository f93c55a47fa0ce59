// The tables of certificates that are ordered by ACME, in the manner of schema.ts, and the step that makes them.

import type { Generated } from "kysely";
import type { OrderPhase } from "../../../core/acme/order-step.ts";
import type { Sha256 } from "../../../core/ids.ts";

export type AcmeTables = {
  /** A customer's accounts at directories. */
  acme_accounts: {
    id: Generated<number>;
    customer_id: number;
    directory: string;
    email: string;
    /** PKCS#8 PEM, sealed. */
    key_sealed: string;
    /** Null until the directory has made the account. */
    url: string | null;
    when_created: string;
  };
  /** The devlove of each domain that was looked at last. */
  acme_domains: {
    domain_id: number;
    /** The manifest in force that named it. */
    manifest_blob: Sha256;
    /** JSON, `AcmeSaid`; null: it orders nothing. */
    said: string | null;
  };
  /** One row for each certificate that a domain wants; it stays from one certificate to the next. */
  acme_orders: {
    id: Generated<number>;
    domain_id: number;
    directory: string;
    email: string;
    part: number;
    /** JSON list: what the certificate should name. */
    names: string;
    /** Since when names wait to be ordered that the certificate in force lacks; null: there are none. */
    changed_at: string | null;
    phase: OrderPhase;
    due_at: string;
    /** From when somebody may have it tried before it is due; null: at any time. */
    try_from: string | null;
    attempts: number;
    /** JSON, `InRow`. */
    in_row: string;
    error: string | null;
    /** JSON, `LeftOut`. */
    left_out: string;
    /** JSON list: the names of the order under way. */
    ordered: string;
    /** The private key of the order under way, sealed; "" if there is none. */
    key_sealed: string;
    order_url: string | null;
    order_expires: string | null;
    /** JSON list of `PublishedChallenge`. */
    challenges: string;
    /** When the challenges of the order were first told. */
    published_at: string | null;
    /** Of the certificate that is there: names as JSON list, chain as PEM, private key sealed. */
    issued_names: string | null;
    chain: string | null;
    issued_key_sealed: string;
    fingerprint: Sha256 | null;
    not_before: string | null;
    not_after: string | null;
    renew_at: string | null;
    /** When the directory is asked for its window of renewal; null: it has none. */
    window_asked_at: string | null;
    /** The window that `renew_at` lies in: `start/end`; null: none. */
    renewal_window: string | null;
    when_issued: string | null;
  };
  /** Where each site was told of an order's challenges last; the receipts of that entry are the proof. */
  acme_challenge_sites: { order_id: number; deployment_site_id: number; seq: number };
};

/** Certificates know the order that they came of, which is null for those that were uploaded. */
export const acme = `
  CREATE TABLE acme_accounts (
    id $id, customer_id integer → customers, directory text NOT NULL, email text NOT NULL,
    key_sealed text NOT NULL, url text, when_created text NOT NULL,
    CONSTRAINT acme_accounts_once UNIQUE (customer_id, directory, email)
  );
  CREATE TABLE acme_domains (
    domain_id integer → domains, manifest_blob text NOT NULL, said text,
    CONSTRAINT acme_domains_pk PRIMARY KEY (domain_id)
  );
  CREATE TABLE acme_orders (
    id $id, domain_id integer → domains, directory text NOT NULL, email text NOT NULL, part integer NOT NULL,
    names text NOT NULL, changed_at text, phase text NOT NULL, due_at text NOT NULL, attempts integer NOT NULL, in_row text NOT NULL,
    error text, left_out text NOT NULL, ordered text NOT NULL, key_sealed text NOT NULL, order_url text,
    order_expires text, challenges text NOT NULL, published_at text, issued_names text, chain text,
    issued_key_sealed text NOT NULL, fingerprint text, not_before text, not_after text, renew_at text,
    window_asked_at text, renewal_window text, when_issued text,
    CONSTRAINT acme_orders_once UNIQUE (domain_id, directory, email, part)
  );
  CREATE INDEX acme_orders_due_at ON acme_orders (due_at);
  CREATE TABLE acme_challenge_sites (
    order_id integer → acme_orders, deployment_site_id integer → deployment_sites, seq bigint NOT NULL,
    CONSTRAINT acme_challenge_sites_pk PRIMARY KEY (order_id, deployment_site_id)
  );
  CREATE INDEX acme_challenge_sites_deployment_site_id ON acme_challenge_sites (deployment_site_id);
  ALTER TABLE certificates ADD COLUMN acme_order_id integer;
  CREATE INDEX certificates_acme_order_id ON certificates (acme_order_id);
`;

/** Somebody may have an order tried before it is due, but not before directories' limits allow it. */
export const acmeTries = `
  ALTER TABLE acme_orders ADD COLUMN try_from text;
`;
