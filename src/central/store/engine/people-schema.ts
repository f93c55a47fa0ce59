// The tables of customers, their users and tokens, in the manner of schema.ts.

import type { Generated } from "kysely";

type Id = Generated<number>;

export type PeopleTables = {
  customers: { id: Id; name: string; created_by_user_id: number | null; when_created: string };
  users: {
    id: Id;
    customer_id: number;
    username: string;
    email: string;
    first_name: string;
    last_name: string;
    /** argon2id or scrypt, PHC-like text; null: no password set. */
    password_hash: string | null;
    may_publish: number;
    may_read_logs: number;
    date_joined: string;
    /** When the user was locked, who is let in nowhere since; null if not locked. */
    when_locked: string | null;
  };
  /** Customer API tokens: SHA-256 in hex of the token. */
  tokens: {
    id: Id;
    user_id: number;
    digest: string;
    name: Generated<string>;
    /** `Role` of wire/customer/token.ts. */
    role: Generated<string>;
    /** JSON list of main domains; null: everything of the customer. */
    domains: string | null;
    /** Made when a browser signed in, and revoked when it signs out. */
    is_session: Generated<number>;
    when_created: string;
    when_expires: string | null;
    /** To the minute. */
    when_last_used: string | null;
    when_revoked: string | null;
  };
};
