// Calls about bots: marks, removals, checks, lists, policy. Lists at their real size are in bot-lists.ts.

import {
  badBotCheckShape,
  botRecordShape,
  botSummaryShape,
  vipBotCheckShape,
  type BotRecord,
  type BotSummary,
} from "../wire/customer/bot.ts";
import {
  policyPartShape,
  policyShape,
  type Policy,
  type PolicyWrite,
} from "../wire/customer/policy.ts";
import { unreviewedDomainShape, type UnreviewedDomain } from "../wire/customer/unreviewed-bots.ts";
import type { BotSet } from "../wire/journal.ts";
import type { Decoder } from "../wire/validate.ts";
import { botListCalls, type BotListClient } from "./bot-lists.ts";
import { botSourceCalls, type BotSourceClient } from "./bot-sources.ts";
import { arrayOf, type CallOptions, type ApiCalls } from "./transport.ts";

export type BotMark = {
  readonly set: BotSet;
  /** An address, `address/prefix`, or with `custom` the start of n+1 addresses as `start_n`. */
  readonly range: string;
  readonly bot: string;
  /** Main domain (with its sub-domains) or one sub-domain. */
  readonly domain: string;
  readonly custom?: boolean;
};

/** `waitSeconds` waits until the connected deployments have proved it; the answer then has `deployments`. */
export type MarkOptions = CallOptions & { readonly waitSeconds?: number };

export type BotCheck = { readonly isBot: boolean; readonly domains: readonly string[] };

export type BotClient = BotListClient &
  BotSourceClient & {
    mark(mark: BotMark, options?: MarkOptions): Promise<BotRecord>;
    remove(mark: BotMark, options?: MarkOptions): Promise<BotRecord>;
    /** Marks like `mark`, answered without the list of addresses. */
    markBriefly(mark: BotMark, options?: MarkOptions): Promise<BotSummary>;
    removeBriefly(mark: BotMark, options?: MarkOptions): Promise<BotSummary>;
    /** Returns whether the whole range is in the set of one of the customer's domains. */
    isBot(set: BotSet, range: string): Promise<BotCheck>;
    listBots(set: BotSet): Promise<readonly BotRecord[]>;
    /** Returns the bots of the last 30 days, by domain. */
    unreviewedBots(): Promise<readonly UnreviewedDomain[]>;
    policy(): Promise<Policy>;
    /** Sets the keys that are given; those left out stay as they are. Null removes a domain's policy. */
    setPolicy(policy: PolicyWrite, options?: CallOptions): Promise<Partial<Policy>>;
  };

export function botClient(calls: Pick<ApiCalls, "call">): BotClient {
  const { call } = calls;
  const { decode } = botRecordShape;
  const pathPart = (range: string): string => encodeURIComponent(range.replace("/", "_"));
  const flag = (custom = false): object => (custom ? { is_custom_ip_range: true } : {});
  const asked = async <T>(
    path: string,
    decode: Decoder<T>,
    body: object,
    { waitSeconds, ...options }: MarkOptions = {},
    form?: "summary",
  ): Promise<T> => {
    const query = { wait: waitSeconds, return: form };
    return (await call("POST", path, decode, { body, query, ...options })).value;
  };
  const marking = ({ set, range, bot, domain, custom }: BotMark): readonly [string, object] => [
    `/mark-as-${set}-bot/${pathPart(range)}/`,
    { attach_to_bot: bot, attach_to_domain: domain, ...flag(custom) },
  ];
  const removing = ({ set, range, bot, domain, custom }: BotMark): readonly [string, object] => [
    `/remove-ip-from-${set}-bot-list/${pathPart(range)}/`,
    { remove_from_bot: bot, remove_from_domain: domain, ...flag(custom) },
  ];
  const whole = async ([path, body]: readonly [string, object], options?: MarkOptions) =>
    asked(path, decode, body, options);
  const brief = async ([path, body]: readonly [string, object], options?: MarkOptions) =>
    asked(path, botSummaryShape.decode, body, options, "summary");
  return {
    ...botListCalls(calls),
    ...botSourceCalls(calls),
    mark: async (mark, options) => whole(marking(mark), options),
    remove: async (mark, options) => whole(removing(mark), options),
    markBriefly: async (mark, options) => brief(marking(mark), options),
    removeBriefly: async (mark, options) => brief(removing(mark), options),
    isBot: async (set, range) => {
      const path = `/is-${set}-bot/${pathPart(range)}/`;
      if (set === "bad") {
        const { value } = await call("GET", path, badBotCheckShape.decode);
        return { isBot: value.is_bad_bot, domains: value.domains };
      }
      const { value } = await call("GET", path, vipBotCheckShape.decode);
      return { isBot: value.is_vip_bot, domains: value.domains };
    },
    listBots: async (set) =>
      (await call("GET", `/list-${set}-bots/`, arrayOf(botRecordShape))).value,
    unreviewedBots: async () =>
      (await call("GET", "/unreviewed-bots/", arrayOf(unreviewedDomainShape))).value,
    policy: async () => (await call("GET", "/bot-access-policy/", policyShape.decode)).value,
    setPolicy: async (body, options) =>
      (await call("POST", "/bot-access-policy/", policyPartShape.decode, { body, ...options }))
        .value,
  };
}
