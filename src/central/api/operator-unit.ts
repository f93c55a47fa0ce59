// What the customer API and the operators' commands need of the store for packages, users, tokens and the audit trail.

import type { Json } from "../../core/canonical-json.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { PageRange } from "./content-unit.ts";

export type NewPackage = {
  /** In its normal form. */
  readonly version: string;
  /** Equal for equal versions. */
  readonly versionKey: string;
  readonly file: string;
  readonly size: number;
  readonly sha256: Sha256;
  /** Name of the file in the directory of packages. */
  readonly storedAs: string;
  readonly userId: number;
};

export type PackageRow = Omit<NewPackage, "userId"> & {
  readonly id: number;
  readonly when_created: string;
};

export type Packages = {
  find(versionKey: string): Promise<PackageRow | undefined>;
  /** The highest version. */
  newest(): Promise<PackageRow | undefined>;
  add(given: NewPackage): Promise<PackageRow | "exists">;
};

export type AuditEntry = {
  readonly via: "api" | "operator";
  /** A user's name, or the account of the host that ran the command. */
  readonly who: string;
  readonly userId: number | null;
  /** Whose things were changed. */
  readonly customerId: number | null;
  /** Method and route, or the command. */
  readonly action: string;
  readonly ids: Readonly<Record<string, Json>>;
  /** Without secrets. */
  readonly change: Json;
  readonly address: string | null;
  readonly requestId: string | null;
};

export type AuditLine = AuditEntry & { readonly id: number; readonly at: string };

export type AuditQuery = {
  readonly customerId: number | undefined;
  readonly who: string | undefined;
  /** ISO 8601, included. */
  readonly since: string | undefined;
};

export type Audit = {
  record(entry: AuditEntry): Promise<void>;
  /** The newest id; 0: none. */
  last(): Promise<number>;
  /** In order of id, those above `after` up to `upTo`: what takes long is the number of ids, not of lines. */
  stretch(
    query: AuditQuery,
    ids: { readonly after: number; readonly upTo: number },
  ): Promise<readonly AuditLine[]>;
};

export type Permission = "publish" | "read-logs";

export type Person = {
  readonly id: number;
  readonly customer_id: number;
  readonly username: string;
  readonly email: string;
  readonly first_name: string;
  readonly last_name: string;
  readonly date_joined: string;
  readonly may_publish: boolean;
  readonly may_read_logs: boolean;
  readonly has_password: boolean;
  /** Tokens in force. */
  readonly tokens: number;
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

export type NewPerson = {
  readonly customerId: number;
  readonly username: string;
  readonly email: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly passwordHash: string | null;
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
  tokens(
    of: {
      readonly userId: number | undefined;
      readonly customerId: number | undefined;
      readonly withRevoked: boolean;
    },
    range: PageRange,
  ): Promise<readonly TokenLine[]>;
  issueToken(userId: number, tokenDigest: string): Promise<number>;
  /** Those that were in force. */
  revokeTokens(
    of: { readonly tokenId: number } | { readonly userId: number },
  ): Promise<readonly TokenLine[]>;
  customers(
    of: { readonly id: number | undefined },
    range: PageRange,
  ): Promise<readonly CustomerLine[]>;
  addCustomer(name: string): Promise<number>;
};
