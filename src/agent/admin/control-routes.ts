// The commands behind the control socket: parameters checked, answers as facts. What they act on comes in as ports.

import type { ControlRoutes } from "../../base/control-socket.ts";
import { AccelError } from "../../core/faults.ts";
import { parseDomainName } from "../../core/ids.ts";
import { parseIp } from "../../core/ip.ts";
import type { AgentStatus } from "./status.ts";

export type ControlPorts = {
  readonly status: () => Promise<AgentStatus>;
  readonly cacheSearch: (query: {
    domain: string;
    pattern: string;
    limit: number;
  }) => Promise<unknown>;
  /** Numbered and proved as a clear of central's is. */
  readonly cacheClear: (request: {
    domain: string;
    host: string | null;
    patterns: readonly string[];
  }) => Promise<unknown>;
  readonly cacheStats: () => Promise<unknown>;
  readonly cacheCheck: () => Promise<unknown>;
  readonly botsCheck: (visitor: {
    ip: string;
    userAgent: string | undefined;
    host: string | undefined;
  }) => unknown;
  readonly botsList: () => unknown;
  readonly logsBacklog: () => unknown;
  /** Main domain of a served host; undefined for one that is not served here. */
  readonly mainDomainOf: (host: string) => string | undefined;
};

const searchLimitMax = 10_000;

export function controlRoutes(ports: ControlPorts): ControlRoutes {
  return {
    status: () => ports.status(),
    "cache-search": (parameters) => {
      const { domain, pattern, limit } = fields(parameters);
      if (typeof pattern !== "string") throw new AccelError("USAGE", "a pattern is needed");
      const shown = Number(limit ?? 50);
      if (!Number.isInteger(shown) || shown < 1 || shown > searchLimitMax) {
        throw new AccelError("USAGE", `--limit: a number from 1 to ${searchLimitMax}`);
      }
      return ports.cacheSearch({ domain: served(ports, domain).main, pattern, limit: shown });
    },
    "cache-clear": (parameters) => {
      const { domain, patterns } = fields(parameters);
      const { main, host } = served(ports, domain);
      if (
        !Array.isArray(patterns) ||
        patterns.length === 0 ||
        !patterns.every((one) => typeof one === "string")
      ) {
        throw new AccelError("USAGE", "patterns are needed");
      }
      return ports.cacheClear({ domain: main, host: host === main ? null : host, patterns });
    },
    "cache-stats": () => ports.cacheStats(),
    "cache-check": () => ports.cacheCheck(),
    "bots-check": (parameters) => {
      const { ip, user_agent: userAgent, domain } = fields(parameters);
      if (typeof ip !== "string" || parseIp(ip) === undefined) {
        throw new AccelError("USAGE", `${JSON.stringify(ip)} is no IP address`);
      }
      const host = domain === undefined ? undefined : served(ports, domain).host;
      return ports.botsCheck({
        ip,
        userAgent: typeof userAgent === "string" ? userAgent : undefined,
        host,
      });
    },
    "bots-list": () => ports.botsList(),
    "logs-backlog": () => ports.logsBacklog(),
  };
}

function fields(parameters: unknown): Readonly<Record<string, unknown>> {
  if (parameters === null || typeof parameters !== "object" || Array.isArray(parameters)) {
    throw new AccelError("USAGE", "the request must be a JSON object");
  }
  return { ...parameters };
}

function served(ports: ControlPorts, domain: unknown): { main: string; host: string } {
  const host = parseDomainName(domain);
  const main = host === undefined ? undefined : ports.mainDomainOf(host);
  if (host === undefined || main === undefined) {
    throw new AccelError("NOT_FOUND", `this agent serves no domain ${JSON.stringify(domain)}`);
  }
  return { main, host };
}
