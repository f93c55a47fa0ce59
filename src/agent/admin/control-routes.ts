// The commands behind the control socket. They check parameters and answer with facts; what they act on comes
// in as ports.

import type { ControlRoutes } from "../../base/control-socket.ts";
import { AccelError } from "../../core/faults.ts";
import {
  clearItemsMax,
  readClearItems,
  type ClearItems,
  type ItemKind,
} from "../../core/patterns/clear-items.ts";
import { parseDomainName } from "../../core/ids.ts";
import { parseIp } from "../../core/addresses/ip.ts";
import type { AgentStatus } from "./status.ts";
import { type UrlArgument, parseWhyArgument } from "./url-argument.ts";
import { parseTailArgument, type TailQuery } from "../../core/tail-query.ts";

export type ControlPorts = {
  readonly status: () => Promise<AgentStatus>;
  /** Asks each origin of the sites in force once. */
  readonly netcheck: () => Promise<unknown>;
  readonly cacheSearch: (query: CacheSelection & { limit: number }) => Promise<unknown>;
  /** Clears; the clear is numbered and proved as one of central's is. */
  readonly cacheClear: (selection: CacheSelection) => Promise<unknown>;
  /** Returns what the clear would hit. */
  readonly cacheDryRun: (selection: CacheSelection) => Promise<unknown>;
  readonly cacheStats: () => Promise<unknown>;
  readonly cacheCheck: () => Promise<unknown>;
  /** Begins a scrub unless one is under way. Returns where it stands. */
  readonly viewsetCheck: () => unknown;
  /** Explains a URL. `cookie` is the value of its Cookie field, or null for none. */
  readonly why: (url: UrlArgument, cookie: string | null) => Promise<unknown>;
  /** Explains a decision. Throws NOT_FOUND. */
  readonly whyDecision: (id: string) => unknown;
  readonly whyAddress: (visitor: VisitorArgument) => unknown;
  readonly botsCheck: (visitor: VisitorArgument) => unknown;
  readonly botsList: () => unknown;
  /** Lists the versions of one main domain, or of all. */
  readonly viewsetList: (domain: string | undefined) => unknown;
  /**
   * Goes back to a kept version, or to the one before. Throws NOT_FOUND, and the fault for which the version
   * cannot be served.
   */
  readonly viewsetRollback: (back: VersionArgument, signal: AbortSignal) => Promise<unknown>;
  /** Tries again what central wants. Throws NOT_FOUND, and the fault for which it cannot be served. */
  readonly viewsetRetry: (domain: string, signal: AbortSignal) => Promise<unknown>;
  readonly logsBacklog: () => unknown;
  readonly logsTail: (query: TailQuery, signal: AbortSignal) => AsyncIterable<unknown>;
  /** The domain of requests that are addressed to the machine; null if they are nobody's. */
  readonly defaultDomain: string | null;
  /** Returns the main domain of a served host; undefined for one that is not served here. */
  readonly mainDomainOf: (host: string) => string | undefined;
};

export type VisitorArgument = {
  readonly ip: string;
  readonly userAgent: string | undefined;
  readonly host: string | undefined;
};

export type VersionArgument = { readonly domain: string; readonly version: string | undefined };

export type CacheSelection = {
  readonly domain: string;
  /** The host; null for the main domain with its sub-domains. */
  readonly host: string | null;
  readonly patterns: readonly string[];
  /** If they are there, they say all. */
  readonly items?: ClearItems;
};

const searchLimitMax = 10_000;

export function controlRoutes(ports: ControlPorts): ControlRoutes {
  return {
    status: () => ports.status(),
    netcheck: () => ports.netcheck(),
    "cache-search": (parameters) => {
      const { domain, patterns, limit } = fields(parameters);
      const shown = Number(limit ?? 50);
      if (!Number.isInteger(shown) || shown < 1 || shown > searchLimitMax) {
        throw new AccelError("USAGE", `--limit: a number from 1 to ${searchLimitMax}`);
      }
      return ports.cacheSearch({ ...selection(ports, domain, patterns), limit: shown });
    },
    "cache-clear": (parameters) => {
      const { domain, dry_run: isDryRun, ...given } = fields(parameters);
      const selected = clearSelected(ports, domain, given);
      return isDryRun === true ? ports.cacheDryRun(selected) : ports.cacheClear(selected);
    },
    why: (parameters) => {
      const asked = fields(parameters);
      const about = parseWhyArgument(asked["about"], ports.defaultDomain);
      const cookie = cookieArgument(asked["cookie"]);
      if (cookie !== null && about.kind !== "url")
        throw new AccelError("USAGE", "--cookie goes with a URL only");
      if (about.kind === "address") return ports.whyAddress(visitor(ports, about.ip, asked));
      if (asked["user_agent"] !== undefined || asked["domain"] !== undefined)
        throw new AccelError("USAGE", "--ua and --domain go with an address only");
      return about.kind === "url" ? ports.why(about.url, cookie) : ports.whyDecision(about.id);
    },
    "cache-stats": () => ports.cacheStats(),
    "cache-check": () => ports.cacheCheck(),
    "bots-check": (parameters) => {
      const asked = fields(parameters);
      const { ip } = asked;
      if (typeof ip !== "string" || parseIp(ip) === undefined) {
        throw new AccelError("USAGE", `${JSON.stringify(ip)} is no IP address`);
      }
      return ports.botsCheck(visitor(ports, ip, asked));
    },
    "bots-list": () => ports.botsList(),
    "viewset-list": (parameters) => {
      const { domain } = fields(parameters);
      return ports.viewsetList(domain === undefined ? undefined : mainDomain(ports, domain));
    },
    "viewset-rollback": (parameters, signal) => {
      const { domain, version } = fields(parameters);
      const said = typeof version === "string" ? version : undefined;
      return ports.viewsetRollback({ domain: mainDomain(ports, domain), version: said }, signal);
    },
    "viewset-retry": (parameters, signal) =>
      ports.viewsetRetry(mainDomain(ports, fields(parameters)["domain"]), signal),
    "viewset-check": () => ports.viewsetCheck(),
    "logs-backlog": () => ports.logsBacklog(),
    "logs-tail": (parameters, signal) => ports.logsTail(parseTailArgument(parameters), signal),
  };
}

/** The most characters of cookies, as many as a header has room for. */
const cookieCharsMax = 32_768;

function cookieArgument(cookie: unknown): string | null {
  if (cookie === undefined) return null;
  if (typeof cookie !== "string" || cookie.length > cookieCharsMax)
    throw new AccelError("USAGE", "--cookie: the value of a Cookie field, such as 'name=value'");
  return cookie;
}

function visitor(
  ports: ControlPorts,
  ip: string,
  { user_agent: userAgent, domain }: Readonly<Record<string, unknown>>,
): VisitorArgument {
  return {
    ip,
    userAgent: typeof userAgent === "string" ? userAgent : undefined,
    host: domain === undefined ? undefined : served(ports, domain).host,
  };
}

function fields(parameters: unknown): Readonly<Record<string, unknown>> {
  if (parameters === null || typeof parameters !== "object" || Array.isArray(parameters)) {
    throw new AccelError("USAGE", "the request must be a JSON object");
  }
  return { ...parameters };
}

/**
 * Reads what a cache command selects: a main domain stands for itself and its sub-domains, a sub-domain only
 * for itself.
 */
function selection(ports: ControlPorts, domain: unknown, patterns: unknown): CacheSelection {
  if (
    !Array.isArray(patterns) ||
    patterns.length === 0 ||
    !patterns.every((one) => typeof one === "string")
  )
    throw new AccelError("USAGE", "patterns are needed");
  const { main, host } = served(ports, domain);
  return { domain: main, host: host === main ? null : host, patterns };
}

const itemNames: Readonly<Record<ItemKind, string>> = {
  urls: "URL",
  prefixes: "prefix",
  hosts: "host",
  tags: "tag",
};

/** Reads what a clear selects: patterns, or items by what people know. Throws USAGE. */
function clearSelected(
  ports: ControlPorts,
  domain: unknown,
  given: Readonly<Record<string, unknown>>,
): CacheSelection {
  const texts = (name: string): readonly string[] => {
    const list = given[name] ?? [];
    if (!Array.isArray(list) || !list.every((one) => typeof one === "string"))
      throw new AccelError("USAGE", `${name} must be a list of texts`);
    return list;
  };
  const { main, host } = served(ports, domain);
  const only = host === main ? null : host;
  const items = {
    patterns: texts("patterns"),
    urls: texts("urls"),
    prefixes: texts("prefixes"),
    hosts: texts("hosts"),
    tags: texts("tags"),
    everything: given["everything"] === true,
    soft: given["soft"] === true,
  };
  const { everything: isAll, soft: _soft, ...lists } = items;
  const count = Object.values(lists).reduce((sum, list) => sum + list.length, 0);
  if (count === 0 && !isAll)
    throw new AccelError("USAGE", "a pattern, URL, prefix, tag or host is needed, or everything");
  if (count > clearItemsMax)
    throw new AccelError("USAGE", `${count} items, at most ${clearItemsMax} are allowed`);
  const isHost = (name: string): boolean =>
    only === null ? ports.mainDomainOf(name) === main : name === only;
  const read = readClearItems(items, only, isHost);
  if (read.ok) return { domain: main, ...read.clear };
  const faults = read.faults.map(({ kind, at, message, suggestion }) => {
    const meant = suggestion === undefined ? "" : `; did you mean ${suggestion}`;
    return `the ${itemNames[kind]} ${JSON.stringify(items[kind][at])} ${message}${meant}`;
  });
  throw new AccelError("USAGE", faults.join("\n"));
}

/** Reads a main domain; only these have versions. Throws USAGE for a sub-domain. */
function mainDomain(ports: ControlPorts, domain: unknown): string {
  const { main, host } = served(ports, domain);
  if (host !== main)
    throw new AccelError("USAGE", `${host} is a sub-domain: its versions are those of ${main}`);
  return main;
}

function served(ports: ControlPorts, domain: unknown): { main: string; host: string } {
  const host = parseDomainName(domain);
  const main = host === undefined ? undefined : ports.mainDomainOf(host);
  if (host === undefined || main === undefined) {
    throw new AccelError("NOT_FOUND", `this agent serves no domain ${JSON.stringify(domain)}`);
  }
  return { main, host };
}
