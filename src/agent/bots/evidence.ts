// What speaks for and against a visitor on a host: the set that holds the address, the name that the user agent claims.
//
// Synchronous, and nothing of it may be kept over an await: the tables lie in shared memory that is written again when a later state is in force.

import { AddressReader } from "../../core/address-reader.ts";
import { AddressTable } from "../../core/address-table.ts";
import type { IpFamily } from "../../core/ip.ts";
import { pairAllow, pairDeny, type HostBots, type HostSet } from "../../core/serving-state.ts";
import {
  decide,
  type BotRules,
  type Evidence,
  type Holder,
  type SetRef,
  type Verdict,
} from "../../core/verdict.ts";

import type { ClaimedBot, ClaimedBotLookup } from "./user-agents.ts";

/** A set with its table opened. */
type OpenSet = HostSet & { readonly open: AddressTable; readonly ref: SetRef };

/** A host's bots, ready to be asked: one for each state. */
export class BotJudge {
  readonly #rules: BotRules;
  readonly #vip: readonly OpenSet[];
  readonly #bad: readonly OpenSet[];
  readonly #reader: AddressReader;

  /** The reader may be shared by all judges of a thread. */
  constructor(bots: HostBots, reader = new AddressReader()) {
    const open =
      (kind: SetRef["kind"]) =>
      (set: HostSet): OpenSet => ({
        ...set,
        open: new AddressTable(set.table),
        ref: { kind, host: set.host, version: set.version },
      });
    this.#rules = bots;
    this.#vip = bots.vip.map(open("vip"));
    this.#bad = bots.bad.map(open("bad"));
    this.#reader = reader;
  }

  /** `clientIp` that is no address (a unix socket, a spoof) is in no set. */
  verdict(clientIp: string, claimed: string | undefined): Verdict {
    return this.decide(this.evidence(clientIp, claimed));
  }

  decide(evidence: Evidence): Verdict {
    return decide(this.#rules, evidence);
  }

  evidence(clientIp: string, claimed: string | undefined): Evidence {
    const family = this.#reader.read(clientIp);
    const holder = family === 0 ? undefined : this.#holder(family);
    if (holder === undefined && claimed === undefined) return nothing;
    return { holder, claimed, claimHasAddresses: claimed !== undefined && this.#holds(claimed) };
  }

  #holder(family: IpFamily): Holder | undefined {
    return (
      holderIn("vip", this.#vip, family, this.#reader.words) ??
      holderIn("bad", this.#bad, family, this.#reader.words)
    );
  }

  #holds(bot: string): boolean {
    return [...this.#vip, ...this.#bad].some(({ open }) => open.ownerNamed(bot) !== 0);
  }
}

/** For all states of a worker: what it opens of one it keeps for as long as that one lives. `unreviewed` is told of each bot whose address is in no set. */
export function createJudge(
  claimedBot: ClaimedBotLookup,
  unreviewed: (domain: string, bot: ClaimedBot) => void = () => {},
): (bots: HostBots, clientIp: string, userAgent: string | undefined, domain: string) => Verdict {
  const reader = new AddressReader();
  const judges = new WeakMap<HostBots, BotJudge>();
  return (bots, clientIp, userAgent, domain) => {
    let judge = judges.get(bots);
    if (judge === undefined) judges.set(bots, (judge = new BotJudge(bots, reader)));
    const claimed = claimedBot(userAgent);
    const evidence = judge.evidence(clientIp, claimed?.name);
    if (claimed !== undefined && evidence.holder === undefined) unreviewed(domain, claimed);
    return judge.decide(evidence);
  };
}

/** Asked once, as operators do. */
export function judgeVisitor(
  bots: HostBots,
  clientIp: string,
  claimed: string | undefined,
): Verdict {
  return new BotJudge(bots).verdict(clientIp, claimed);
}

const nothing: Evidence = { holder: undefined, claimed: undefined, claimHasAddresses: false };

function holderIn(
  kind: Holder["kind"],
  sets: readonly OpenSet[],
  family: IpFamily,
  words: Uint32Array,
): Holder | undefined {
  for (const { open, pairs, ref } of sets) {
    const owner = open.ownerOf(family, words);
    if (owner === 0) continue;
    const said = pairs[owner];
    const pair = said === pairAllow ? "allow" : said === pairDeny ? "deny" : undefined;
    return { kind, bot: open.name(owner), pair, set: ref };
  }
  return undefined;
}
