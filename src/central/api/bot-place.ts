// The bot that `/bots/{list}/{bot}/…?domain=` names.

import type { BotSet } from "../../wire/journal.ts";
import type { BotPlace } from "../store/bots/bot-versions.ts";
import type { Work } from "../store/engine/work.ts";
import type { Actor } from "../store/people/tokens.ts";
import { invalid, notFound, type ProblemAnswer } from "./http/answer.ts";
import type { EndpointCall } from "./http/endpoint.ts";
import { hostNamed, isProblem } from "./http/path-values.ts";

const nameCharsMax = 255;

type Call = EndpointCall<unknown, Actor>;

export type BotNamed = { readonly set: BotSet; readonly bot: string };

/** Reads `/bots/{list}/{bot}/` of a path. */
export function botNamed({ param }: Pick<Call, "param">): BotNamed | ProblemAnswer {
  const set = param("list");
  if (set !== "bad" && set !== "vip")
    return notFound(`list ${JSON.stringify(set)} of bots; there are bad and vip`);
  const bot = param("bot");
  if (bot.length > nameCharsMax || /\p{Cc}/u.test(bot) || bot.trim() !== bot)
    return invalid([
      {
        path: "bot",
        message: `must be 1 to ${nameCharsMax} characters, without blanks at the ends and control characters`,
      },
    ]);
  return { set, bot };
}

/** Finds the host of `?domain=`. */
export async function botPlaceOf(
  work: Work,
  { actor, query }: Pick<Call, "actor" | "query">,
  { set, bot }: BotNamed,
): Promise<BotPlace | ProblemAnswer> {
  const host = await hostNamed(work, actor, query.get("domain") ?? "", "?domain");
  return isProblem(host) ? host : { domainId: host.domainId, host: host.host, set, bot };
}

export function noBot({ bot, set, host }: BotPlace): ProblemAnswer {
  return notFound(`bot ${JSON.stringify(bot)} in the ${set} list of ${host}`);
}
