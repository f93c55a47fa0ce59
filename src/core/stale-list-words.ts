// Which list of a bot does not come, in words. Of its URL only the host is told: the rest may hold a secret.

type NamedList = {
  /** The main domain or the sub-domain whose list it is. */
  readonly host: string;
  readonly kind: "bad" | "vip";
  readonly bot: string;
  readonly url: string;
};

/** The most lists that one sentence names. */
const namedMax = 3;

/** Names a list, such as `bad list of Scraper`. */
export function listName({ kind, bot }: Pick<NamedList, "kind" | "bot">): string {
  return `${kind === "vip" ? "VIP" : "bad"} list of ${bot}`;
}

/** Returns the host that a list is fetched from, with the port if there is one. */
export function listHost({ url }: Pick<NamedList, "url">): string {
  return URL.canParse(url) ? new URL(url).host : "its URL";
}

/** Says which lists cannot be fetched, of a domain that has such lists. */
export function staleListsText(domain: string, lists: readonly NamedList[]): string {
  if (lists.length === 0) return `a list of bots of ${domain} cannot be fetched from its URL`;
  const named = lists
    .slice(0, namedMax)
    .map((list) => `the ${listName(list)} for ${list.host} from ${listHost(list)}`);
  const more = lists.length - named.length;
  const all = more === 0 ? named : [...named, `${more} more`];
  const last = all.at(-1) ?? "";
  const text = all.length === 1 ? last : `${all.slice(0, -1).join(", ")} and ${last}`;
  return `${text} cannot be fetched`;
}
