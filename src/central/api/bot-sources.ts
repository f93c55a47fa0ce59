// `/bots/{list}/{bot}/source/`: a URL from which the addresses of a bot are fetched on a schedule (jobs/bot-sources.ts).

import { hookUrlFault } from "../../core/addresses/public-address.ts";
import { fetchIntervalS, staleFromMs } from "../../core/list-source.ts";
import { publishedCrawler, publishedCrawlers } from "../../core/published-crawlers.ts";
import {
  botSourceFetchParameters,
  botSourceParameters,
  botSourceShape,
  botSourcesMax,
  botSourceWrite,
  publishedBotsShape,
  type BotSource,
} from "../../wire/customer/bot-source.ts";
import { gives, givesNothing, lists } from "../../wire/customer/operation.ts";
import { heldBot } from "../store/bots/bot-rewrite.ts";
import {
  countSources,
  dropSource,
  fetchSourceNow,
  findSource,
  listSources,
  placeOfSource,
  putSource,
  type SourceRow,
} from "../store/bots/bot-sources.ts";
import type { BotPlace } from "../store/bots/bot-versions.ts";
import type { Work } from "../store/engine/work.ts";
import type { Actor } from "../store/people/tokens.ts";
import { botNamed, botPlaceOf } from "./bot-place.ts";
import type { ResourceDeps } from "./deps.ts";
import {
  conflict,
  invalid,
  list,
  noContent,
  notFound,
  ok,
  type Answer,
  type ProblemAnswer,
} from "./http/answer.ts";
import { forUsers, type Endpoint, type EndpointCall } from "./http/endpoint.ts";
import { isProblem } from "./http/path-values.ts";

const path = "/bots/:list/:bot/source/";

type Call = EndpointCall<unknown, Actor>;

export function botSourceEndpoints(deps: ResourceDeps): readonly Endpoint[] {
  return [...readEndpoints(), ...changeEndpoints(deps)];
}

function readEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/bots/sources/",
      id: "listBotSources",
      needs: { role: "read", scope: "domain" },
      summary: "List the URLs from which addresses of bots are fetched",
      gives: lists(botSourceShape),
      handle: async ({ actor, read }) =>
        list(async (range) =>
          read(async (work) => {
            const rows = await listSources(work, actor, range);
            return Promise.all(rows.map(async (row) => shown(work, row)));
          }),
        ),
    }),
    forUsers({
      method: "GET",
      path: "/bots/published/",
      id: "listPublishedBots",
      needs: { role: "read", scope: "domain" },
      summary: "List the crawlers whose owners publish the addresses from which they come",
      gives: gives(publishedBotsShape),
      handle: async () =>
        ok(publishedCrawlers.map(({ bot, covers, url }) => ({ bot, covers: [...covers], url }))),
    }),
    forUsers({
      method: "GET",
      path,
      id: "getBotSource",
      needs: { role: "read", scope: "domain" },
      summary: "Read from which URL the addresses of a bot are fetched, and how that went",
      gives: gives(botSourceShape),
      refuses: [404],
      query: botSourceParameters,
      handle: async (call) =>
        call.read(async (work) =>
          at(work, call, async (place) => {
            const row = await findSource(work, place);
            return row === undefined ? noSource(place) : ok(await shown(work, row));
          }),
        ),
    }),
  ];
}

function changeEndpoints({ settings }: ResourceDeps): readonly Endpoint[] {
  return [
    forUsers({
      method: "PUT",
      path,
      id: "setBotSource",
      needs: { role: "write", scope: "domain" },
      summary: "Have the addresses of a bot fetched from a URL on a schedule",
      gives: gives(botSourceShape),
      refuses: [404, 409],
      query: botSourceParameters,
      body: botSourceWrite,
      handle: async (call) => {
        const { interval_s: intervalS = fetchIntervalS.usual } = call.body;
        const from = urlOf(call, settings.privateSourcesAllowed);
        if (isProblem(from)) return from;
        const { customerId, username: createdBy } = call.actor;
        return call.change(async (work) =>
          at(work, call, async (place) => {
            const known = await findSource(work, place);
            if (known === undefined && (await countSources(work, customerId)) >= botSourcesMax)
              return conflict(`a customer has at most ${botSourcesMax} lists fetched from URLs`);
            const row = await putSource(work, place, { ...from, intervalS, createdBy });
            return ok(await shown(work, row));
          }),
        );
      },
    }),
    forUsers({
      method: "DELETE",
      path,
      id: "deleteBotSource",
      needs: { role: "write", scope: "domain" },
      summary: "Stop fetching the addresses of a bot; it keeps those that it has",
      gives: givesNothing,
      refuses: [404],
      query: botSourceParameters,
      handle: async (call) =>
        call.change(async (work) =>
          at(work, call, async (place) =>
            (await dropSource(work, place)) ? noContent : noSource(place),
          ),
        ),
    }),
    forUsers({
      method: "POST",
      path: `${path}fetch/`,
      id: "fetchBotSource",
      needs: { role: "write", scope: "domain" },
      summary: "Fetch the addresses of a bot now, whole",
      gives: gives(botSourceShape),
      refuses: [404],
      query: botSourceFetchParameters,
      handle: async (call) => {
        const shrink = call.query.get("allow_shrink") ?? "false";
        if (shrink !== "true" && shrink !== "false")
          return invalid([{ path: "?allow_shrink", message: "must be true or false" }]);
        return call.change(async (work) =>
          at(work, call, async (place) => {
            const row = await fetchSourceNow(work, place, shrink === "true");
            return row === undefined ? noSource(place) : ok(await shown(work, row));
          }),
        );
      },
    }),
  ];
}

/** Says from where the list is to be fetched. */
function urlOf(
  {
    body,
    param,
  }: Pick<EndpointCall<{ url?: string; published?: boolean }, Actor>, "body" | "param">,
  mayBePrivate: boolean,
): { readonly url: string; readonly isPublished: boolean } | ProblemAnswer {
  const { url, published = false } = body;
  if (!published) {
    if (url === undefined)
      return invalid([{ path: "", message: "must have url, or published: true" }]);
    const message = hookUrlFault(url, mayBePrivate);
    return message === undefined
      ? { url, isPublished: false }
      : invalid([{ path: "/url", message }]);
  }
  const known = publishedCrawler(param("bot"));
  if (known !== undefined && param("list") === "vip") return { url: known.url, isPublished: true };
  const names = publishedCrawlers.map(({ bot }) => bot).join(", ");
  const message = `is for VIP bots whose owners publish their addresses: ${names}`;
  return invalid([{ path: "/published", message }]);
}

async function at(
  work: Work,
  call: Pick<Call, "param" | "actor" | "query">,
  action: (place: BotPlace) => Promise<Answer>,
): Promise<Answer> {
  const named = botNamed(call);
  if (isProblem(named)) return named;
  const place = await botPlaceOf(work, call, named);
  return isProblem(place) ? place : action(place);
}

function noSource({ bot, set, host }: BotPlace): ProblemAnswer {
  return notFound(`source of ${JSON.stringify(bot)} in the ${set} list of ${host}`);
}

async function shown(work: Work, row: SourceRow): Promise<BotSource> {
  const held = await heldBot(work, placeOfSource(row));
  const { id, kind, bot, host, url, interval_s, outcome, reason, failures } = row;
  const times = {
    when_created: row.when_created,
    when_tried: row.when_tried,
    when_fetched: row.when_fetched,
    when_next: row.when_next,
  };
  const state = stateOf(row, Date.parse(work.at));
  const published = row.is_published === 1;
  const place = { id, list: kind, bot, domain: host, url, published, interval_s, state };
  return { ...place, outcome, reason, failures, count: held?.count ?? 0, ...times };
}

function stateOf(row: SourceRow, nowMs: number): BotSource["state"] {
  if (row.taken_until !== null && Date.parse(row.taken_until) > nowMs) return "fetching";
  if (row.failures === 0) return row.when_tried === null ? "waiting" : "good";
  const last = Date.parse(row.when_fetched ?? row.when_created);
  return staleFromMs(last, row.interval_s) <= nowMs ? "stale" : "failing";
}
