// Reads the purge requests of content management systems and caches: `PURGE`, `BAN` and `URIBAN` without a body.
// Each dialect is a closed grammar, written after the source that sends it. A regular expression is compared
// with the forms below and is never run; any other is refused, so that nobody believes it was obeyed.
//
//   any sender           PURGE /path?query                        that URL; nginx and Varnish (vcl purge)
//   nginx                PURGE /path*                             what begins so (ngx_http_proxy_module, proxy_cache_purge)
//   WordPress            PURGE, X-Purge-Method: default           that URL (Proxy Cache Purge 5.2, purge_url)
//                        PURGE /path.*, X-Purge-Method: regex     what begins so (the same; WP Rocket 3.15, varnish.php)
//                        both with X-VC-Purge-Method              the same (Varnish Caching 1.8, purge_url)
//   Drupal               BAN, Cache-Tags or Purge-Cache-Tags      these tags (varnish_purger 2, purge_purger_http 1)
//                        URIBAN /path                             that URL (varnish_purger 2, varnish_image_purge)
//   Magento              PURGE, X-Magento-Tags-Pattern            these tags, or all (2.4, CacheInvalidate PurgeCache)
//   Shopware             PURGE, xkey                              these tags (6.5, VarnishReverseProxyGateway)
//                        BAN /path                                what begins so (6.5, its recommended VCL)
//   xkey                 PURGE, xkey, xkey-purge, xkey-softpurge  these tags (varnish-modules 0.22, vmod_xkey)
//   FOSHttpCache         BAN, X-Cache-Tags                        these tags (3.0, ProxyClient\Varnish)
//                        BAN, X-Url, X-Host, X-Content-Type       URL or beginning, hosts (the same, banPath)
//   Fastly, Pantheon     PURGE, Surrogate-Key                     these tags
//
// A soft purge makes stale what it matches: `xkey-softpurge` (vmod_xkey), and any of these with `Fastly-Soft-Purge: 1`.

import { parseDomainName } from "../ids.ts";
import { fieldValue, type Field } from "../http/http-fields.ts";
import { clearItemsMax } from "../patterns/clear-items.ts";
import { allOf, beginningWith, joinItems, urlItem, type PurgeItems } from "./purge-items.ts";

/** The methods that are purge requests and nothing else; node:http knows only the first. */
export const purgeMethods: ReadonlySet<string> = new Set(["PURGE", "BAN", "URIBAN"]);

export type PurgeAsked = {
  readonly method: string;
  /** Path and query as sent; begins with a slash. */
  readonly url: string;
  readonly fields: readonly Field[];
  /** The host that is meant; null: every host that the sender may clear. */
  readonly host: string | null;
};

export type PurgeRead =
  | { readonly kind: "items"; readonly dialect: string; readonly items: PurgeItems }
  /** `message` says what is wrong and what is taken. */
  | { readonly kind: "refused"; readonly message: string };

/** Reads a purge request. */
export function readPurge(asked: PurgeAsked): PurgeRead {
  const unread = refusedFields.find((name) => fieldValue(asked.fields, name) !== undefined);
  if (unread !== undefined)
    return refused(`${unread} is a regular expression of the sender's own; none is run here`);
  const read = readTags(asked) ?? (asked.method === "BAN" ? readBan(asked) : readUrl(asked));
  return read.kind === "items" && fieldValue(asked.fields, "fastly-soft-purge") === "1"
    ? { ...read, items: { ...read.items, soft: true } }
    : read;
}

/** Fields in which some configurations of Varnish take any expression. */
const refusedFields = ["x-ban-regex", "x-ban-url", "x-ban-host", "x-purge-regex"];

type TagField = {
  readonly name: string;
  readonly dialect: string;
  /** Returns the tags, "all", or undefined for a value outside the grammar. */
  readonly read: (value: string) => readonly string[] | "all" | undefined;
  /** The grammar, for whoever sent something else. */
  readonly takes: string;
};

const byBlank = /[ \t]+/;
const byBlankOrComma = /[ \t,]+/;
/** Drupal's tokens join by any of them: separated_comma, separated_pipe, or a blank (purge_tokens). */
const byAny = /[ \t,|]+/;

/** What no tag holds where the sender's cache reads the value as an expression. */
const special = /[()[\]{}*+?^$\\|"]/;

const tagFields: readonly TagField[] = [
  ...["xkey", "xkey-purge", "xkey-softpurge"].map((name) => ({
    name,
    dialect: "xkey",
    read: (value: string) => listed(value, byBlankOrComma),
    takes: "tags separated by blanks or commas",
  })),
  {
    name: "surrogate-key",
    dialect: "surrogate-key",
    read: (value) => listed(value, byBlank),
    takes: "tags separated by blanks",
  },
  ...["cache-tags", "purge-cache-tags"].map((name) => ({
    name,
    dialect: "drupal",
    read: (value: string) => plainTags(listed(value, byAny)),
    takes: "tags separated by blanks, commas or |",
  })),
  {
    name: "x-cache-tags",
    dialect: "foshttpcache",
    read: readFosTags,
    takes: "(^|,)(tag|tag)(,|$), or tags separated by blanks or commas",
  },
  {
    name: "x-magento-tags-pattern",
    dialect: "magento",
    read: readMagentoTags,
    takes: ".*, or ((^|,)tag(,|$)) once for each tag, joined by |",
  },
];

function readTags({ fields }: PurgeAsked): PurgeRead | undefined {
  let found: Extract<PurgeRead, { kind: "items" }> | undefined;
  for (const { name, dialect, read, takes } of tagFields) {
    const value = fieldValue(fields, name);
    if (value === undefined) continue;
    const tags = read(value);
    if (tags === undefined || tags.length === 0) return refused(`${name} takes ${takes}`);
    if (tags !== "all" && tags.length > clearItemsMax)
      return refused(
        `${name} names ${tags.length} tags, at most ${clearItemsMax} are taken at once`,
      );
    const soft = name === "xkey-softpurge" ? ({ soft: true } as const) : {};
    const items: PurgeItems = { ...(tags === "all" ? { everything: true } : { tags }), ...soft };
    found = { kind: "items", dialect, items: joinItems(found?.items ?? {}, items) };
  }
  return found;
}

function listed(value: string, separator: RegExp): readonly string[] {
  return [...new Set(value.split(separator).filter((tag) => tag !== ""))];
}

function plainTags(tags: readonly string[]): readonly string[] | undefined {
  return tags.some((tag) => special.test(tag)) ? undefined : tags;
}

const fosTags = /^\(\^\|,\)\(([^()]+)\)\(,\|\$\)$/;

/** FOSHttpCache quotes the tags with PHP's preg_quote and joins them in one group. */
function readFosTags(value: string): readonly string[] | undefined {
  const group = fosTags.exec(value)?.[1];
  if (group === undefined) return plainTags(listed(value, byBlankOrComma));
  const tags = group.split("|").map(unquoted);
  return tags.every((tag) => tag !== undefined && tag !== "")
    ? [...new Set(tags.filter((tag) => tag !== undefined))]
    : undefined;
}

const magentoTag = /^\(\(\^\|,\)([^()[\]{}*+?^$\\|,"]+)\(,\|\$\)\)/;

function readMagentoTags(value: string): readonly string[] | "all" | undefined {
  if (value === ".*") return "all";
  const tags = new Set<string>();
  let rest = value;
  for (;;) {
    const [form = "", tag = ""] = magentoTag.exec(rest) ?? [];
    if (form === "") return undefined;
    tags.add(tag);
    if (tags.size > clearItemsMax) return [...tags];
    rest = rest.slice(form.length);
    if (rest === "") return [...tags];
    if (!rest.startsWith("|")) return undefined;
    rest = rest.slice(1);
  }
}

/**
 * Undoes preg_quote. Undefined where an unquoted character has a meaning in an expression; a plain dot is taken
 * for itself, for senders leave it as it is.
 */
function unquoted(text: string): string | undefined {
  const plain = text.replaceAll(/\\([^A-Za-z0-9])/g, "\0$1");
  if (/(?:^|[^\0])[()[\]{}*+?^$\\|"]/.test(plain)) return undefined;
  return plain.replaceAll("\0", "");
}

/** `BAN /path` is an expression to Shopware's VCL; some others mean that URL, which begins so as well. */
function readBan({ url, fields, host }: PurgeAsked): PurgeRead {
  const names = ["x-url", "x-host", "x-content-type"];
  if (names.some((name) => fieldValue(fields, name) !== undefined)) return readFosBan(fields, host);
  if (special.test(url.replace("?", "")))
    return refused(`BAN takes a path without signs of regular expressions`);
  return items("ban", beginningWith(host, url));
}

const anything = ".*";
const fosHosts = /^\^\(([^()]+)\)\$$/;

function readFosBan(fields: readonly Field[], host: string | null): PurgeRead {
  if ((fieldValue(fields, "x-content-type") ?? anything) !== anything)
    return refused("X-Content-Type takes .* only; clear by URL, tag or host instead");
  const saidHosts = fieldValue(fields, "x-host") ?? anything;
  const hosts = saidHosts === anything ? [host] : hostsOf(saidHosts);
  if (hosts === undefined) return refused("X-Host takes .* or ^(host|host)$");
  const url = fieldValue(fields, "x-url") ?? anything;
  let all: PurgeItems = {};
  for (const one of hosts) {
    const found = url === anything || url === "^/.*" ? allOf(one) : readExpression(url, one);
    if (found === undefined)
      return refused("X-Url takes .*, ^/path$, ^/path or ^/path.* without other signs");
    all = joinItems(all, found);
  }
  return items("foshttpcache", all);
}

function hostsOf(expression: string): readonly string[] | undefined {
  const group = fosHosts.exec(expression)?.[1] ?? expression.replace(/^\^(.*)\$$/, "$1");
  const hosts = group.split("|").map((text) => parseDomainName(unquoted(text)));
  return hosts.every((one) => one !== undefined) ? hosts : undefined;
}

function readExpression(expression: string, host: string | null): PurgeItems | undefined {
  const [, body, end = ""] = /^\^(\/.*?)(\$|\.\*\$?)?$/.exec(expression) ?? [];
  const path = body === undefined ? undefined : unquoted(body);
  if (path === undefined) return undefined;
  return end === "$" ? { urls: [urlItem(host, path)] } : beginningWith(host, path);
}

const purgeMethodForms =
  "X-Purge-Method and X-VC-Purge-Method take default, or regex with a path that may end with .*";

function readUrl({ method, url, fields, host }: PurgeAsked): PurgeRead {
  const [said = "default"] = ["x-purge-method", "x-vc-purge-method"].flatMap(
    (name) => fieldValue(fields, name)?.toLowerCase() ?? [],
  );
  if (said === "regex") {
    const path = url.replace(/\.\*$/, "");
    return special.test(path)
      ? refused(purgeMethodForms)
      : items("wordpress", beginningWith(host, path));
  }
  if (said !== "default" && said !== "exact") return refused(purgeMethodForms);
  if (method === "PURGE" && url.endsWith("*")) {
    // nginx means `/path*`; `/path.*` without the field is what WordPress means by it.
    const path = url.replace(/\.?\*$/, "");
    return path.includes("*")
      ? refused("PURGE takes one * at the end of the path")
      : items("nginx", beginningWith(host, path));
  }
  return items(method === "URIBAN" ? "drupal" : "plain", { urls: [urlItem(host, url)] });
}

function items(dialect: string, found: PurgeItems | undefined): PurgeRead {
  return found === undefined
    ? refused("the path has too many spellings")
    : { kind: "items", dialect, items: found };
}

function refused(message: string): PurgeRead {
  return { kind: "refused", message };
}
