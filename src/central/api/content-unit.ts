// What the customer API needs of the store for what domains serve: versions, devlove files, imports, bots, policies, clears, deployments.

import type { Sha256 } from "../../core/ids.ts";
import type { IpRange } from "../../core/addresses/ip.ts";
import type { EdgeFacts } from "../../wire/channel.ts";
import type { BotRecord, MarkDeployment } from "../../wire/customer/bot.ts";
import type { ClearDeployment, ClearState } from "../../wire/customer/clear.ts";
import type { DevloveFile } from "../../wire/customer/devlove-file.ts";
import type { Policy } from "../../wire/customer/policy.ts";
import type { ViewsetVersion } from "../../wire/customer/viewset.ts";
import type { BotSet } from "../../wire/journal.ts";

/** A page in order of id: those behind `after`. */
export type PageRange = { readonly after: number; readonly limit: number };

type DevloveWrite = { readonly schema: string; readonly content: string };

export type DevloveFiles = {
  list(viewsetId: number, range: PageRange): Promise<readonly DevloveFile[]>;
  find(viewsetId: number, id: number): Promise<DevloveFile | undefined>;
  create(
    domainId: number,
    viewsetName: string,
    write: DevloveWrite,
  ): Promise<
    | { readonly outcome: "created"; readonly file: DevloveFile }
    | { readonly outcome: "taken"; readonly id: number }
  >;
  replace(viewsetId: number, id: number, write: DevloveWrite): Promise<"replaced" | "taken">;
};

/** What the manifest of a version is composed of. */
export type ActivationBasis = {
  readonly viewsetId: number;
  readonly schema: string;
  readonly content: string;
  /** Manifest blob with the views; null: the host's own directory. */
  readonly filesBlob: string | null;
};

export type Viewsets = {
  list(domainId: number, range: PageRange): Promise<readonly ViewsetVersion[]>;
  findByName(domainId: number, name: string): Promise<number | undefined>;
  /** Undefined where there is no such version. */
  basis(domainId: number, viewsetId: number): Promise<ActivationBasis | undefined>;
  /** `changed`: the basis is no longer what is stored; nothing was done. */
  activate(
    domainId: number,
    basis: ActivationBasis,
    manifest: Sha256,
  ): Promise<"activated" | "changed">;
};

export type ImportTarget = {
  readonly domainId: number;
  readonly domain: string;
  readonly deploymentSiteId: number;
  readonly viewsetName: string;
};

export type Imports = {
  start(target: ImportTarget): Promise<"started" | "not-linked" | "name-taken" | "running">;
  /** The last one of that name. */
  find(target: ImportTarget): Promise<
    | {
        readonly id: string;
        readonly state: "started" | "done" | "failed";
        readonly error: string | null;
        readonly viewsetId: number | null;
        readonly files: number | null;
        readonly bytes: number | null;
        readonly whenStarted: string;
        readonly whenEnded: string | null;
      }
    | undefined
  >;
};

export type BotPlace = {
  readonly domainId: number;
  readonly host: string;
  readonly set: BotSet;
  readonly bot: string;
};

export type Bots = {
  attach(
    place: BotPlace,
    ranges: readonly IpRange[],
    elementsMax: number,
  ): Promise<
    | { readonly outcome: "attached"; readonly botId: number; readonly added: number }
    | { readonly outcome: "full"; readonly count: number }
  >;
  /** `ranges` are those of the asked ones that may be attached; where none is, the answer says why by what was asked for. */
  detach(
    place: BotPlace,
    ranges: readonly IpRange[],
    asked: readonly IpRange[],
  ): Promise<
    | { readonly outcome: "detached"; readonly botId: number }
    | { readonly outcome: "no-bot" }
    | { readonly outcome: "not-attached" }
    | { readonly outcome: "covered"; readonly by: string }
  >;
  list(customerId: number, set: BotSet, range: PageRange): Promise<readonly BotRecord[]>;
  /** Elements of the customer, without those of bots that hold more than `botMax`. Exact where it is above `most`. */
  total(
    customerId: number,
    limits: { readonly most: number; readonly botMax: number },
  ): Promise<number>;
  readonly rewrites: BotRewrites;
};

/** The set of a customer's main domain or sub-domain. */
export type SetPlace = {
  readonly customerId: number;
  readonly host: string;
  readonly set: BotSet;
};

/** `entries`: where it was seen in the deployment's journal, for whoever asks again. */
export type MarkFound = {
  readonly version: number;
  readonly deployments: readonly (MarkDeployment & { readonly entries: readonly number[] })[];
};

export type MarkProofs = {
  /** What is proved by now of the version that `before` was about; without it, of the newest. Undefined: there is no such set. */
  state(place: SetPlace, before?: MarkFound): Promise<MarkFound | undefined>;
};

/** Of a bot: what it holds, by count and digest. */
export type BotHeld = { readonly id: number; readonly count: number; readonly digest: string };
/** What is written of a bot beside it, in many transactions, until one puts it in force. */
export type BotRewrite = {
  readonly setId: number;
  readonly botId: number;
  readonly before: BotHeld | undefined;
  readonly count: number;
  readonly digest: string;
};
type Rewritten = { readonly rewrite: BotRewrite; readonly texts: readonly string[] };

/** Parts are of at most 1,000 ranges. */
type BotRewrites = {
  held(place: BotPlace): Promise<BotHeld | undefined>;
  whichHeld(botId: number, ranges: readonly IpRange[]): Promise<readonly string[]>;
  begin(place: BotPlace): Promise<BotRewrite>;
  /** `left`: of those `without`. `last` undefined: that was all. */
  copy(
    rewrite: BotRewrite,
    from: { readonly bot: string; readonly after: string; readonly without: ReadonlySet<string> },
  ): Promise<Rewritten & { readonly left: readonly string[]; readonly last: string | undefined }>;
  stage(rewrite: BotRewrite, bot: string, ranges: readonly IpRange[]): Promise<Rewritten>;
  /** False, and nothing is changed, where the bot is not what it was when it was begun. */
  put(
    place: BotPlace,
    rewrite: BotRewrite,
    change: { readonly added: readonly string[]; readonly removed: readonly string[] },
  ): Promise<boolean>;
  drop(rewrite: BotRewrite): Promise<void>;
};

export type BotChecks = {
  /** Hosts for whom the set holds the whole range, in order of name. */
  covering(customerId: number, set: BotSet, range: IpRange): Promise<readonly string[]>;
  /** Elements of the domain's other set that share addresses with the range where the host's own speaks. */
  overlaps(
    host: { readonly domainId: number; readonly main: string; readonly host: string },
    set: BotSet,
    range: IpRange,
    limit: number,
  ): Promise<NonNullable<BotRecord["also_in"]>>;
};

export type UnreviewedDomain = {
  readonly id: number;
  readonly name: string;
  /** Of the domain itself, of all domains; null: not set. */
  readonly access: { readonly own: boolean | null; readonly general: boolean | null };
  /** Sub-domains with a policy of their own. */
  readonly subDomains: readonly { readonly name: string; readonly own: boolean }[];
  readonly bots: readonly {
    readonly name: string;
    readonly description: string | null;
    readonly requests: number;
  }[];
};

export type UnreviewedBots = {
  /** One for each domain, in order of id. */
  list(customerId: number, range: PageRange): Promise<readonly UnreviewedDomain[]>;
};

export type BotPair = { readonly domain: string; readonly bot: string };
type Access = boolean | null;
/** What is undefined stays; null is "not set". */
export type PolicyChange = {
  readonly allow: readonly BotPair[] | undefined;
  readonly deny: readonly BotPair[] | undefined;
  readonly general: { readonly access: Access } | undefined;
  readonly perDomain: readonly { readonly domain: string; readonly access: Access }[] | undefined;
};

export type Policies = {
  get(customerId: number): Promise<Policy>;
  change(
    customerId: number,
    change: PolicyChange,
  ): Promise<
    | { readonly outcome: "changed" }
    | { readonly outcome: "too-large"; readonly bytes: number; readonly bytesMax: number }
  >;
};

/** `isProofWhole`: no further receipt of this deployment is awaited. */
export type ClearFound = Omit<ClearState, "deployments"> & {
  readonly deployments: readonly (ClearDeployment & { readonly isProofWhole: boolean })[];
};

export type Clears = {
  create(clear: {
    readonly domainId: number;
    readonly main: string;
    readonly host: string;
    readonly patterns: readonly string[];
  }): Promise<string>;
  state(customerId: number, clearId: string): Promise<ClearFound | undefined>;
  /** Where a clear of the domain would be journaled; `lastSeen`: of any agent there. */
  sites(
    domainId: number,
  ): Promise<readonly { readonly id: number; readonly lastSeen: string | undefined }[]>;
};

/** What is not known is undefined. */
export type InstanceFacts = {
  readonly instanceId: string;
  readonly lastSeen: string;
  /** When it last delivered logs or confirmed that it holds none back. */
  readonly logsConfirmedAt: string | undefined;
  readonly agentVersion: string | undefined;
  readonly edge: EdgeFacts | undefined;
};

export type DeploymentFacts = {
  readonly id: number;
  readonly name16: string;
  readonly tags: readonly string[];
  /** Main domains that it serves. */
  readonly domains: readonly string[];
  /** Those of the last day, newest sight first; where there is none, the one seen last. */
  readonly instances: readonly InstanceFacts[];
};

export type Reporting = Pick<DeploymentFacts, "id" | "instances">;

export type Deployments = {
  list(customerId: number): Promise<readonly DeploymentFacts[]>;
  /** One for each deployment of the domain, in order of id. */
  reporting(domainId: number): Promise<readonly Reporting[]>;
};
