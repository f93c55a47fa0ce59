// What the customer API needs of the store: one transaction at a time, as a unit of queries named by resource.
//
// Everything a unit writes is kept or taken back as one. Ids given to it belong to the customer, unless a method takes the customer's id itself.

import type { DeploymentSite } from "../../wire/customer/deployment-site.ts";
import type { Domain } from "../../wire/customer/domain.ts";
import type { UserProfile } from "../../wire/customer/user.ts";
import type {
  BotChecks,
  Bots,
  Clears,
  Deployments,
  DevloveFiles,
  Imports,
  MarkProofs,
  Policies,
  UnreviewedBots,
  Viewsets,
  PageRange,
} from "./content-unit.ts";
import type { Audit, Packages, People } from "./operator-unit.ts";
import type { MonitorChannels, Recovery, Subscriptions } from "./notice-unit.ts";
import type { Certificates, SymmetricKeys } from "./vault-unit.ts";

export type CustomerStore = {
  /** One transaction; `keep` false takes back all that the action wrote. Rejects with what the action throws, and on a broken store. */
  run<T>(
    action: (unit: Unit) => Promise<{ readonly keep: boolean; readonly value: T }>,
  ): Promise<{ readonly value: T; readonly appended: readonly number[] }>;
};

/** Who asks. */
export type Actor = {
  readonly userId: number;
  readonly customerId: number;
  readonly username: string;
  readonly mayReadLogs: boolean;
};

export type Unit = {
  /** Time of the transaction, ISO 8601. */
  readonly at: string;
  readonly audit: Audit;
  readonly botChecks: BotChecks;
  readonly bots: Bots;
  readonly certificates: Certificates;
  readonly clears: Clears;
  readonly customers: Customers;
  readonly deployments: Deployments;
  readonly devloveFiles: DevloveFiles;
  readonly domains: Domains;
  readonly idempotency: Idempotency;
  readonly imports: Imports;
  readonly packages: Packages;
  readonly people: People;
  readonly markProofs: MarkProofs;
  readonly monitorChannels: MonitorChannels;
  readonly policies: Policies;
  readonly recovery: Recovery;
  readonly sites: Sites;
  readonly subscriptions: Subscriptions;
  readonly symmetricKeys: SymmetricKeys;
  readonly unreviewedBots: UnreviewedBots;
  readonly users: Users;
  readonly viewsets: Viewsets;
};

type Customers = {
  find(
    id: number,
  ): Promise<
    | { readonly id: number; readonly name: string; readonly createdByUserId: number | null }
    | undefined
  >;
  rename(id: number, name: string): Promise<void>;
  /** With all that it owns. Answers with the deployment sites whose channels are to be closed. */
  remove(id: number): Promise<readonly number[]>;
};

type Users = {
  byToken(tokenDigest: string): Promise<Actor | undefined>;
  credentials(username: string): Promise<
    | {
        readonly actor: Actor;
        /** Null: none was set. */
        readonly passwordHash: string | null;
        readonly mayPublish: boolean;
      }
    | undefined
  >;
  /** Undefined when the username is in use. */
  startTrial(trial: {
    readonly username: string;
    readonly email: string;
    readonly tokenDigest: string;
  }): Promise<{ readonly userId: number; readonly customerId: number } | undefined>;
  profile(
    userId: number,
  ): Promise<{ readonly customerId: number; readonly profile: UserProfile } | undefined>;
  /** What is undefined stays. */
  update(
    userId: number,
    change: {
      readonly username: string | undefined;
      readonly first_name: string | undefined;
      readonly last_name: string | undefined;
      readonly email: string | undefined;
      readonly passwordHash: string | undefined;
    },
  ): Promise<"updated" | "username-taken">;
};

export type SiteRow = {
  readonly id: number;
  readonly name16: string;
  readonly createdByUserId: number;
};

type Sites = {
  list(customerId: number, range: PageRange): Promise<readonly DeploymentSite[]>;
  record(customerId: number, id: number): Promise<DeploymentSite | undefined>;
  find(customerId: number, id: number): Promise<SiteRow | undefined>;
  findByName(customerId: number, name16: string): Promise<SiteRow | undefined>;
  create(owner: Actor, tags: readonly string[]): Promise<number>;
  setTags(customerId: number, id: number, tags: readonly string[]): Promise<void>;
  /** `oldUntil`, ISO 8601: how long the secret before is accepted; undefined: no longer. */
  rotateSecret(id: number, oldUntil: string | undefined): Promise<void>;
  remove(id: number): Promise<void>;
};

export type DomainRow = {
  readonly id: number;
  readonly name: string;
  readonly createdByUserId: number;
  readonly activeViewsetId: number | null;
};

/** A main domain (`host` is `main`) or a sub-domain. */
export type HostRow = { readonly domainId: number; readonly main: string; readonly host: string };

type Domains = {
  list(customerId: number, range: PageRange): Promise<readonly Domain[]>;
  record(customerId: number, id: number): Promise<Domain | undefined>;
  /** Main domains only. */
  find(customerId: number, name: string): Promise<DomainRow | undefined>;
  host(customerId: number, name: string): Promise<HostRow | undefined>;
  subDomains(domainId: number): Promise<readonly string[]>;
  create(
    owner: Actor,
    given: {
      readonly name: string;
      readonly tags: readonly string[];
      readonly deploymentSiteId: number | undefined;
    },
  ): Promise<number | "taken">;
  putSubDomain(
    customerId: number,
    domain: DomainRow,
    sub: { readonly name: string; readonly share: boolean | undefined },
  ): Promise<"done" | "taken">;
  linkById(domainId: number, deploymentSiteId: number): Promise<void>;
  unlinkById(
    domainId: number,
    deploymentSiteId: number,
  ): Promise<"unlinked" | "by-tags" | "not-linked">;
  remove(id: number): Promise<void>;
};

export type IdempotentCall = {
  readonly scope: string;
  readonly key: string;
  readonly requestDigest: string;
};

type Idempotency = {
  find(
    call: IdempotentCall,
  ): Promise<
    | { readonly outcome: "answered"; readonly status: number; readonly body: unknown }
    | { readonly outcome: "other-request" }
    | undefined
  >;
  store(call: IdempotentCall, status: number, body: unknown): Promise<void>;
};
