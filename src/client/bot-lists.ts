// Calls about what a bot holds, at its real size: read by the page, replaced, changed in bulk.

import {
  botAddressesShape,
  botListChangeShape,
  type BotAddresses,
  type BotListChange,
} from "../wire/customer/bot-list.ts";
import type { BotSet } from "../wire/journal.ts";
import type { ApiCalls, CallOptions } from "./transport.ts";

/** A bot's list: in the bad or the VIP list of a main domain (with its sub-domains) or of one sub-domain. */
export type ListPlace = { readonly set: BotSet; readonly bot: string; readonly domain: string };

export type ReplaceOptions = Pick<CallOptions, "signal"> & {
  /** Nothing is changed; the answer says what would be. */
  readonly dryRun?: boolean;
  /** The list may be less than half as long as before, or empty. */
  readonly allowShrink?: boolean;
  /** Of an earlier answer: if the bot holds something else by now, nothing is changed (412). */
  readonly ifMatch?: string;
  readonly waitSeconds?: number;
};

/** What a change did, with the tag of what the bot holds now. */
export type BotListChanged = BotListChange & { readonly etag: string | undefined };
export type BotPage = BotAddresses & {
  readonly etag: string | undefined;
  /** `after` of the next page; undefined: this is the last one. */
  readonly next: string | undefined;
};

export type BotListClient = {
  /** Returns a page of what a bot holds. */
  botAddresses(
    place: ListPlace,
    page?: { readonly after?: string; readonly limit?: number },
  ): Promise<BotPage>;
  /** Replaces all that a bot holds. `list`: an address or CIDR range a line, up to a million. */
  replaceBotAddresses(
    place: ListPlace,
    list: string,
    options?: ReplaceOptions,
  ): Promise<BotListChanged>;
  /** Adds and removes up to 20,000 addresses and ranges each. */
  changeBotAddresses(
    place: ListPlace,
    change: { readonly add?: readonly string[]; readonly remove?: readonly string[] },
    options?: CallOptions & Pick<ReplaceOptions, "ifMatch" | "waitSeconds">,
  ): Promise<BotListChanged>;
};

export function botListCalls({ call }: Pick<ApiCalls, "call">): BotListClient {
  const listPath = ({ set, bot }: ListPlace): string =>
    `/bots/${set}/${encodeURIComponent(bot)}/addresses/`;
  return {
    botAddresses: async (place, { after, limit } = {}) => {
      const query = { domain: place.domain, after, limit };
      const path = listPath(place);
      const { value, next, etag } = await call("GET", path, botAddressesShape.decode, { query });
      return { ...value, etag, next: next === undefined ? undefined : value.ip_addresses.at(-1) };
    },
    replaceBotAddresses: async (place, text, { dryRun, allowShrink, ifMatch, ...options } = {}) => {
      const query = {
        domain: place.domain,
        dry_run: dryRun === true ? "true" : undefined,
        allow_shrink: allowShrink === true ? "true" : undefined,
        wait: options.waitSeconds,
      };
      const { signal } = options;
      const given = {
        text,
        query,
        ...(ifMatch !== undefined && { ifMatch }),
        ...(signal !== undefined && { signal }),
      };
      const { value, etag } = await call("PUT", listPath(place), botListChangeShape.decode, given);
      return { ...value, etag };
    },
    changeBotAddresses: async (place, body, { waitSeconds, ...options } = {}) => {
      const query = { domain: place.domain, wait: waitSeconds };
      const given = { body, query, ...options };
      const { value, etag } = await call("POST", listPath(place), botListChangeShape.decode, given);
      return { ...value, etag };
    },
  };
}
