// Calls about URLs from which the addresses of bots are fetched.

import {
  botSourceShape,
  publishedBotsShape,
  type BotSource,
  type PublishedBot,
} from "../wire/customer/bot-source.ts";
import type { ListPlace } from "./bot-lists.ts";
import { arrayOf, nothing, type ApiCalls, type CallOptions } from "./transport.ts";

export type BotSourceClient = {
  listBotSources(): Promise<readonly BotSource[]>;
  /** Lists the crawlers whose owners publish their addresses. */
  listPublishedBots(): Promise<readonly PublishedBot[]>;
  botSource(place: ListPlace): Promise<BotSource>;
  /** Has a bot's addresses fetched from a URL, daily unless told otherwise. */
  setBotSource(
    place: ListPlace,
    source: (
      | { readonly url: string }
      /** What the crawler's owner publishes. */
      | { readonly published: true }
    ) & { readonly interval_s?: number },
    options?: CallOptions,
  ): Promise<BotSource>;
  /** Fetches the list now. `allowShrink`: the bot may be left with less than half of what it holds. */
  fetchBotSource(
    place: ListPlace,
    options?: CallOptions & { readonly allowShrink?: boolean },
  ): Promise<BotSource>;
  /** Ends the fetching. The bot keeps what it holds. */
  deleteBotSource(place: ListPlace, options?: CallOptions): Promise<void>;
};

export function botSourceCalls({ call }: Pick<ApiCalls, "call">): BotSourceClient {
  const path = ({ set, bot }: ListPlace): string =>
    `/bots/${set}/${encodeURIComponent(bot)}/source/`;
  const decode = botSourceShape.decode;
  return {
    listBotSources: async () =>
      (await call("GET", "/bots/sources/", arrayOf(botSourceShape))).value,
    listPublishedBots: async () =>
      (await call("GET", "/bots/published/", publishedBotsShape.decode)).value,
    botSource: async (place) =>
      (await call("GET", path(place), decode, { query: { domain: place.domain } })).value,
    setBotSource: async (place, body, options = {}) => {
      const query = { domain: place.domain };
      return (await call("PUT", path(place), decode, { body, query, ...options })).value;
    },
    fetchBotSource: async (place, { allowShrink, ...options } = {}) => {
      const allow_shrink = allowShrink === true ? "true" : undefined;
      const query = { domain: place.domain, allow_shrink };
      return (await call("POST", `${path(place)}fetch/`, decode, { query, ...options })).value;
    },
    deleteBotSource: async (place, options = {}) => {
      const query = { domain: place.domain };
      await call("DELETE", path(place), nothing, { query, ...options });
    },
  };
}
