// Bad bots and VIP bots: marking, removing, checking, listing. The two lists differ in names and limits only.

import { gives, lists } from "../../wire/customer/operation.ts";
import {
  botMark,
  botRemove,
  type BotRecord,
  badBotCheckShape,
  botRecordShape,
  vipBotCheckShape,
} from "../../wire/customer/bot.ts";
import { isTrue } from "../../wire/customer/shape.ts";
import type { BotSet } from "../../wire/journal.ts";
import {
  conflict,
  invalid,
  list,
  notFound,
  ok,
  tooMany,
  type Answer,
  type ProblemAnswer,
} from "./answer.ts";
import { parseMarkedRange, parsePlainRange, parseRemovedRange } from "./bot-range.ts";
import { forUsers, type Call, type Endpoint } from "./endpoint.ts";
import { hostNamed, isProblem } from "./path-values.ts";
import type { RateLimit, ResourceDeps } from "./resources.ts";
import type { Actor, Unit } from "./unit.ts";

/** A bot holds so many through the API, or one custom range of up to 65,536; the operator's import knows no such limit. */
const elementsMax = 10_000;
const overlapsShown = 20;
const customersMax = 20_000; // Some 4 MB of buckets.

export function botEndpoints({ rateLimit, settings }: ResourceDeps): readonly Endpoint[] {
  const marks = rateLimit({
    burst: settings.marksBurst,
    perSecond: settings.marksPerSecond,
    keysMax: customersMax,
  });
  return [...listEndpoints("bad", marks), ...listEndpoints("vip", marks)];
}

function listEndpoints(set: BotSet, marks: RateLimit): readonly Endpoint[] {
  const [name, title] = set === "bad" ? ["bad-bot", "bad bot"] : ["vip-bot", "VIP bot"];
  return [
    forUsers({
      method: "POST",
      path: `/mark-as-${name}/:range/`,
      summary: `Attach an address or a range to a ${title}`,
      gives: gives(botRecordShape),
      refuses: [404, 429],
      body: botMark,
      handle: async (call) => attach(call, set, marks),
    }),
    forUsers({
      method: "POST",
      path: `/remove-ip-from-${name}-list/:range/`,
      summary: `Detach an address or a range from a ${title}`,
      gives: gives(botRecordShape),
      refuses: [404, 429],
      body: botRemove,
      handle: async (call) => detach(call, set, marks),
    }),
    forUsers({
      method: "GET",
      path: `/is-${name}/:range/`,
      summary: `Whether a whole address or range belongs to a ${title} of one of the customer's domains`,
      gives: gives(set === "bad" ? badBotCheckShape : vipBotCheckShape),
      refuses: [400],
      handle: async ({ actor, param, read }) => {
        const parsed = parsePlainRange(param("range"));
        if (!parsed.ok) return badRange(parsed.reason);
        const domains = await read(async (unit) =>
          unit.botChecks.covering(actor.customerId, set, parsed.whole),
        );
        return ok({
          [set === "bad" ? "is_bad_bot" : "is_vip_bot"]: domains.length > 0,
          ip_address_or_range: parsed.text,
          domains,
        });
      },
    }),
    forUsers({
      method: "GET",
      path: `/list-${name}s/`,
      summary: `List ${title}s, one record for each domain and bot`,
      gives: lists(botRecordShape),
      handle: async ({ actor, read }) =>
        list(async (range) => read(async (unit) => unit.bots.list(actor.customerId, set, range))),
    }),
  ];
}

function badRange(reason: string): ProblemAnswer {
  return invalid([{ path: "range", message: reason }]);
}

async function record(
  unit: Unit,
  actor: Actor,
  set: BotSet,
  botId: number,
): Promise<BotRecord | undefined> {
  const [bot] = await unit.bots.list(actor.customerId, set, { after: botId - 1, limit: 1 });
  return bot;
}

type Flag = { is_custom_ip_range?: Parameters<typeof isTrue>[0] };
type Marked = Call<Flag & { attach_to_bot: string; attach_to_domain: string }, Actor>;
type Removed = Call<Flag & { remove_from_bot: string; remove_from_domain: string }, Actor>;

async function attach(call: Marked, set: BotSet, marks: RateLimit): Promise<Answer> {
  const { actor, body, param, change } = call;
  const isCustom = isTrue(body.is_custom_ip_range);
  const parsed = parseMarkedRange(param("range"), { set, isCustom });
  if (!parsed.ok) return badRange(parsed.reason);
  const waitMs = marks.take(String(actor.customerId));
  if (waitMs > 0) return tooMany("too many marks", waitMs);
  return change(async (unit) => {
    const host = await hostNamed(unit, actor, body.attach_to_domain, "/attach_to_domain");
    if (isProblem(host)) return host;
    const place = { domainId: host.domainId, host: host.host, set, bot: body.attach_to_bot };
    const attached = await unit.bots.attach(place, parsed.elements, elementsMax);
    if (attached.outcome === "full")
      return conflict(
        `${place.bot} holds ${attached.count} addresses and ranges, at most ${elementsMax} are attached through this API: take another bot for what is more`,
      );
    const also = await unit.botChecks.overlaps(
      host,
      set === "bad" ? "vip" : "bad",
      parsed.whole,
      overlapsShown,
    );
    const bot = await record(unit, actor, set, attached.botId);
    return ok({ ...bot, ...(also.length > 0 && { also_in: also }) });
  });
}

async function detach(call: Removed, set: BotSet, marks: RateLimit): Promise<Answer> {
  const { actor, body, param, change } = call;
  const isCustom = isTrue(body.is_custom_ip_range);
  const parsed = parseRemovedRange(param("range"), { set, isCustom });
  if (!parsed.ok) return badRange(parsed.reason);
  const waitMs = marks.take(String(actor.customerId));
  if (waitMs > 0) return tooMany("too many removals", waitMs);
  return change(async (unit) => {
    const host = await hostNamed(unit, actor, body.remove_from_domain, "/remove_from_domain");
    if (isProblem(host)) return host;
    const place = { domainId: host.domainId, host: host.host, set, bot: body.remove_from_bot };
    const detached = await unit.bots.detach(place, parsed.elements);
    switch (detached.outcome) {
      case "no-bot":
        return notFound(`bot ${JSON.stringify(place.bot)} in this list of ${host.host}`);
      case "not-attached":
        return notFound(`${parsed.text} at ${place.bot}`);
      case "covered":
        return conflict(
          `${parsed.text} is covered by ${detached.by}, which is attached as a whole: remove that`,
        );
      case "detached":
        return ok(await record(unit, actor, set, detached.botId));
      default:
        return detached satisfies never;
    }
  });
}
