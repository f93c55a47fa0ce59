// What the customer API and the operators' commands need of the store for packages, users, tokens and the audit trail.

import type { NewPackage, PackageRow } from "../../core/accel-package.ts";
import type { AuditEntry, AuditLine, AuditQuery, AuditStretch } from "../../core/audit-trail.ts";
import type { NewPerson, Permission, Person } from "../../core/people.ts";
import type { PageRange } from "./content-unit.ts";

export type Packages = {
  find(versionKey: string): Promise<PackageRow | undefined>;
  /** The highest version. */
  newest(): Promise<PackageRow | undefined>;
  add(given: NewPackage): Promise<PackageRow | "exists">;
};

export type Audit = {
  record(entry: AuditEntry): Promise<void>;
  /** The newest id; 0: none. */
  last(): Promise<number>;
  /** In order of id, those above `after` up to `upTo`: what takes long is the number of ids, not of lines. */
  stretch(query: AuditQuery, ids: AuditStretch): Promise<readonly AuditLine[]>;
};

export type TokenLine = {
  readonly id: number;
  readonly user_id: number;
  readonly username: string;
  readonly customer_id: number;
  readonly when_created: string;
  readonly when_revoked: string | null;
};

export type CustomerLine = {
  readonly id: number;
  readonly name: string;
  readonly when_created: string;
  /** The user who may delete it. */
  readonly created_by: string | null;
  readonly users: number;
  readonly deployment_sites: number;
  readonly domains: number;
};

/** Across customers: for operators only. */
export type People = {
  list(
    of: { readonly customerId: number | undefined },
    range: PageRange,
  ): Promise<readonly Person[]>;
  find(username: string): Promise<Person | undefined>;
  /** The first user of a customer that nobody created is taken for its creator. */
  add(person: NewPerson): Promise<number | "username-taken" | "no-customer">;
  setPassword(userId: number, passwordHash: string): Promise<void>;
  setPermission(userId: number, permission: Permission, isGranted: boolean): Promise<void>;
  /** Links to a new token that were sent to the address before are void. */
  setEmail(userId: number, email: string): Promise<void>;
  /** Neither token nor password nor link of it is good until it is unlocked; links that were sent never are again. */
  lock(userId: number): Promise<void>;
  unlock(userId: number): Promise<void>;
  tokens(
    of: {
      readonly userId: number | undefined;
      readonly customerId: number | undefined;
      readonly withRevoked: boolean;
    },
    range: PageRange,
  ): Promise<readonly TokenLine[]>;
  issueToken(userId: number, tokenDigest: string): Promise<number>;
  /** Those that were in force; and how many links to a new token, which are void as well. */
  revokeTokens(
    of: { readonly tokenId: number } | { readonly userId: number },
  ): Promise<{ readonly revoked: readonly TokenLine[]; readonly links: number }>;
  customers(
    of: { readonly id: number | undefined },
    range: PageRange,
  ): Promise<readonly CustomerLine[]>;
  addCustomer(name: string): Promise<number>;
};
