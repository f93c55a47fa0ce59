// What speaks for and against a visitor on a host: the set that holds the address, and the name that the user
// agent claims.
//
// It is synchronous, and nothing of it may be kept over an await: the tables lie in shared memory that is
// written again when a later state is in force.

import { AddressReader } from "../../../core/addresses/address-reader.ts";
import { AddressTable } from "../../../core/addresses/address-table.ts";
import {
  pairAllow,
  pairDeny,
  type HostBots,
  type HostSet,
} from "../../../core/serving/serving-state.ts";
import {
  decide,
  type BotRules,
  type Holder,
  type SetRef,
  type Verdict,
} from "../../../core/serving/verdict.ts";

import { publishedUnder } from "../../../core/published-crawlers.ts";
import type { CountedBot } from "../unreviewed/unreviewed-counts.ts";
import type { ClaimedBot, ClaimedBotLookup } from "../unreviewed/user-agents.ts";

/** The most names of which is remembered whether VIP sets hold them; names are the visitors' own texts, and hosts are many. */
const keptNamesMax = 256;

/** What a user agent claims: a name, the bot's other names and its class. */
export type Claim = Pick<ClaimedBot, "name" | "aliases"> & Partial<Pick<ClaimedBot, "botClass">>;

/** Judges visitors by a host's bots; one is made for each state. */
export class BotJudge {
  readonly #rules: BotRules;
  /** The sets in the order in which they count. */
  readonly #sets: readonly OpenSet[];
  readonly #vip: readonly OpenSet[];
  readonly #reader: AddressReader;
  /** Whether a VIP set holds addresses under a name; of the names that were asked for lately. */
  readonly #vipNames = new Map<string, boolean>();

  /** The reader may be shared by all judges of a thread. */
  constructor(bots: HostBots, reader = new AddressReader()) {
    this.#rules = bots;
    this.#sets = [
      ...bots.vip.map((set) => new OpenSet(bots, "vip", set)),
      ...bots.bad.map((set) => new OpenSet(bots, "bad", set)),
    ];
    this.#vip = this.#sets.filter(({ kind }) => kind === "vip");
    this.#reader = reader;
  }

  /** Judges a visitor. A `clientIp` that is no address (a unix socket, a spoof) is in no set. */
  verdict(clientIp: string, claim: Claim | undefined): Verdict {
    const held = this.ofAddress(clientIp);
    if (held !== undefined) return held;
    return this.ofClaim(claim, claim !== undefined && this.isFake(claim));
  }

  /**
   * Judges by the first set that holds the address, whatever the visitor claims to be; undefined if none
   * does.
   */
  ofAddress(clientIp: string): Verdict | undefined {
    const reader = this.#reader;
    const family = reader.read(clientIp);
    if (family === 0) return undefined;
    for (const { table, verdicts } of this.#sets) {
      const owner = table.ownerOf(family, reader.words);
      if (owner !== 0) return verdicts.of(owner);
    }
    return undefined;
  }

  /** Judges an address that is in no set. `isFake` is what is said of the claim. */
  ofClaim(claim: Claim | undefined, isFake: boolean): Verdict {
    return decide(this.#rules, {
      holder: undefined,
      claimed: claim?.name,
      aliases: claim?.aliases,
      botClass: claim?.botClass,
      claimHasAddresses: claim !== undefined && this.#holdsFor(claim),
      isFake,
    });
  }

  /** Whether a VIP set holds addresses for the bot by any of its names, or for the one under which its addresses are published. */
  isFake({ name, aliases = [] }: Pick<Claim, "name" | "aliases">): boolean {
    if (this.#vip.length === 0) return false;
    if (this.#isVip(name) || aliases.some((other) => this.#isVip(other))) return true;
    const owner = publishedUnder(name);
    return owner !== undefined && this.#isVip(owner);
  }

  /** Made-up names must not keep out those that come often, so the oldest one makes room. */
  #isVip(name: string): boolean {
    const names = this.#vipNames;
    const known = names.get(name);
    if (known !== undefined) return known;
    const isVip = this.#vip.some(({ table }) => table.ownerNamed(name) !== 0);
    const oldest = names.size >= keptNamesMax ? names.keys().next().value : undefined;
    if (oldest !== undefined) names.delete(oldest);
    names.set(name, isVip);
    return isVip;
  }

  /**
   * Whether sets hold addresses for the bot by any of its names. It is looked up only where a pair allows the
   * bot, for nothing else depends on it.
   */
  #holdsFor({ name, aliases = [] }: Claim): boolean {
    const { allow } = this.#rules;
    const isAllowed = allow.has(name) || aliases.some((other) => allow.has(other));
    return isAllowed && (this.#holds(name) || aliases.some((other) => this.#holds(other)));
  }

  #holds(bot: string): boolean {
    return this.#sets.some(({ table }) => table.ownerNamed(bot) !== 0);
  }
}

/** A set with its table opened. */
class OpenSet {
  readonly kind: SetRef["kind"];
  readonly table: AddressTable;
  readonly verdicts: SetVerdicts;

  constructor(rules: BotRules, kind: SetRef["kind"], set: HostSet) {
    this.kind = kind;
    this.table = new AddressTable(set.table);
    this.verdicts = new SetVerdicts(rules, kind, set, this.table);
  }
}

/**
 * The most bots of a set whose verdicts are kept, 100 bytes each. If a set has more bots, each verdict is
 * made for its request.
 */
const keptVerdictsMax = 10_000;

/** The verdicts on the addresses that a set holds: one for each bot, made when it is first asked for. */
class SetVerdicts {
  readonly #rules: BotRules;
  readonly #ref: SetRef;
  readonly #pairs: Uint8Array;
  readonly #table: AddressTable;
  readonly #made: (Verdict | undefined)[];

  constructor(rules: BotRules, kind: SetRef["kind"], set: HostSet, table: AddressTable) {
    this.#rules = rules;
    this.#ref = { kind, host: set.host, version: set.version };
    this.#pairs = set.pairs;
    this.#table = table;
    const kept = table.names <= keptVerdictsMax ? table.names + 1 : 0;
    this.#made = Array.from({ length: kept });
  }

  of(owner: number): Verdict {
    if (owner >= this.#made.length) return this.#make(owner);
    return (this.#made[owner] ??= this.#make(owner));
  }

  #make(owner: number): Verdict {
    const said = this.#pairs[owner];
    const pair = said === pairAllow ? "allow" : said === pairDeny ? "deny" : undefined;
    const { kind } = this.#ref;
    const holder: Holder = { kind, bot: this.#table.name(owner), pair, set: this.#ref };
    const evidence = { holder, claimed: undefined, claimHasAddresses: false };
    return Object.freeze(decide(this.#rules, evidence));
  }
}

/**
 * Judges a visitor; called once for each request. It is synchronous and never throws. `domain` is the main
 * domain under which unreviewed bots are counted.
 */
export type VisitorJudge = (
  bots: HostBots,
  clientIp: string,
  userAgent: string | undefined,
  domain: string,
) => Verdict;

/**
 * Creates a judge for all states of a worker; what it opens of a state it keeps as long as that state lives.
 * `unreviewed` is told of each bot whose address is in no set; a fake has the name that it claims.
 */
export function createJudge(
  claimedBot: ClaimedBotLookup,
  unreviewed: (domain: string, bot: CountedBot) => void = () => {},
): VisitorJudge {
  const reader = new AddressReader();
  const judges = new WeakMap<HostBots, BotJudge>();
  return (bots, clientIp, userAgent, domain) => {
    let judge = judges.get(bots);
    if (judge === undefined) judges.set(bots, (judge = new BotJudge(bots, reader)));
    const held = judge.ofAddress(clientIp);
    if (held !== undefined) return held;
    const claimed = claimedBot(userAgent);
    if (claimed === undefined) return judge.ofClaim(undefined, false);
    const { name, description } = claimed;
    const isFake = judge.isFake(claimed);
    unreviewed(domain, { name, description, isFake });
    return judge.ofClaim(claimed, isFake);
  };
}

/** Judges one visitor for an operator. */
export function judgeVisitor(bots: HostBots, clientIp: string, claim: Claim | undefined): Verdict {
  return new BotJudge(bots).verdict(clientIp, claim);
}
