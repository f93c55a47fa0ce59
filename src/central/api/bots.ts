// Bad bots and VIP bots: marking, removing, checking, listing. The two lists differ only in names and limits. Lists at their real size are in bot-lists.ts.

import { presentNamesOf } from "../../core/former-bot-names.ts";
import { gives, lists, type QueryParameter } from "../../wire/customer/operation.ts";
import {
  botMark,
  botRemove,
  badBotCheckShape,
  type BotRecord,
  botRecordShape,
  markAnswerShape,
  returnParameter,
  vipBotCheckShape,
} from "../../wire/customer/bot.ts";
import { optionalWaitParameter } from "../../wire/customer/proof.ts";
import type { BotSet } from "../../wire/journal.ts";
import { KeyedMutex } from "../../base/mutex.ts";
import { list, ok } from "./http/answer.ts";
import { botListEndpoints } from "./bot-lists.ts";
import { botSourceEndpoints } from "./bot-sources.ts";
import { attach, badRange, detach, type Marks } from "./bot-marks.ts";
import { parsePlainRange } from "./bot-range.ts";
import { markAnswer, markQueryFault } from "./mark-answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import { isProblem, mainDomain } from "./http/path-values.ts";
import type { Ports, ResourceDeps } from "./deps.ts";
import { coveringHosts } from "../store/bots/bot-checks.ts";
import { listBotRecords } from "../store/bots/bot-records.ts";

const customersMax = 20_000; // Some 4 MB of buckets.

export function botEndpoints(deps: ResourceDeps): readonly Endpoint[] {
  const { rateLimit, settings, ports } = deps;
  const marks: Marks = {
    limit: rateLimit({
      burst: settings.marksBurst,
      perSecond: settings.marksPerSecond,
      keysMax: customersMax,
    }),
    elementsMax: settings.botElements,
    turns: new KeyedMutex(),
  };
  return [
    ...listEndpoints("bad", marks, ports),
    ...listEndpoints("vip", marks, ports),
    ...botListEndpoints(marks, ports),
    ...botSourceEndpoints(deps),
  ];
}

function wordsOf(set: BotSet) {
  return set === "bad"
    ? { name: "bad-bot", title: "bad bot", noun: "BadBot" }
    : { name: "vip-bot", title: "VIP bot", noun: "VipBot" };
}

function listEndpoints(set: BotSet, marks: Marks, ports: Ports): readonly Endpoint[] {
  const { name, title, noun } = wordsOf(set);
  return [
    forUsers({
      method: "POST",
      path: `/mark-as-${name}/:range/`,
      id: `markAs${noun}`,
      needs: { role: "write", scope: "domain" },
      summary: `Attach an address or a range to a ${title}`,
      gives: gives(markAnswerShape),
      refuses: [404, 429],
      query: { wait: optionalWaitParameter, return: returnParameter },
      body: botMark,
      handle: async (call) => markQueryFault(call.query) ?? attach(call, set, marks),
      finish: async (call, answer) => markAnswer(call, set, answer, ports),
    }),
    forUsers({
      method: "POST",
      path: `/remove-ip-from-${name}-list/:range/`,
      id: `removeFrom${noun}s`,
      needs: { role: "write", scope: "domain" },
      summary: `Detach an address or a range from a ${title}`,
      gives: gives(markAnswerShape),
      refuses: [404, 429],
      query: { wait: optionalWaitParameter, return: returnParameter },
      body: botRemove,
      handle: async (call) => markQueryFault(call.query) ?? detach(call, set, marks),
      finish: async (call, answer) => markAnswer(call, set, answer, ports),
    }),
    forUsers({
      method: "GET",
      path: `/is-${name}/:range/`,
      id: `is${noun}`,
      needs: { role: "read", scope: "domain" },
      summary: `Whether a whole address or range belongs to a ${title} of one of the customer's domains`,
      gives: gives(set === "bad" ? badBotCheckShape : vipBotCheckShape),
      refuses: [400],
      handle: async ({ actor, param, read }) => {
        const parsed = parsePlainRange(param("range"));
        if (!parsed.ok) return badRange(parsed.reason);
        const domains = await read(async (work) => coveringHosts(work, actor, set, parsed.whole));
        return ok({
          [set === "bad" ? "is_bad_bot" : "is_vip_bot"]: domains.length > 0,
          ip_address_or_range: parsed.text,
          domains,
        });
      },
    }),
    listEndpoint(set),
  ];
}

const listEndpoint = (set: BotSet): Endpoint => {
  const { name, title, noun } = wordsOf(set);
  return forUsers({
    method: "GET",
    path: `/list-${name}s/`,
    id: `list${noun}s`,
    needs: { role: "read", scope: "domain" },
    summary: `List ${title}s, one record for each domain and bot`,
    gives: lists(botRecordShape),
    refuses: [404],
    query: { domain: domainParameter },
    handle: async ({ actor, query, read }) => {
      const domain = query.get("domain");
      const found =
        domain === null ? undefined : await read(async (work) => mainDomain(work, actor, domain));
      if (found !== undefined && isProblem(found)) return found;
      return list(async (range) =>
        read(async (work) => {
          const bots = await listBotRecords(work, actor, set, range, found?.name);
          return bots.map((bot) => withPresentNames(bot));
        }),
      );
    },
  });
};

const domainParameter: QueryParameter = {
  schema: { type: "string", examples: ["www.example.com"] },
  description: "Only the records of this main domain and its sub-domains.",
};

/**
 * Adds today's names to a record whose name is an older one; it holds for the bots that have these names now.
 */
function withPresentNames(bot: BotRecord): BotRecord {
  const standsFor = presentNamesOf(bot.name);
  return standsFor.length === 0 ? bot : { ...bot, stands_for: [...standsFor] };
}
