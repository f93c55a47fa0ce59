// Asks each origin of the sites in force once, as `netcheck` shows it. The agent does it itself: what a shell reaches, the unit may not.

import type { SiteSettings } from "../../core/serving/effective-devlove.ts";
import { timedHead, type TimedAnswer } from "./timed-head.ts";

const originsMax = 200;
const atOnce = 8;

export type HostWithOrigins = { readonly name: string; readonly site: SiteSettings | null };
export type TimedOrigin = TimedAnswer & { readonly hosts: readonly string[] };
export type TimedOrigins = {
  readonly origins: readonly TimedOrigin[];
  /** How many more there are than are asked. */
  readonly not_asked: number;
};

/** Asks all origins, eight at a time. Never rejects. */
export async function askOrigins(hosts: readonly HostWithOrigins[]): Promise<TimedOrigins> {
  const asked = new Map<string, { url: string; host: string; hosts: string[] }>();
  for (const { name, site } of hosts) {
    const backend = site?.backend;
    if (backend === null || backend === undefined) continue;
    const host = backend.host === "preserve" ? name : backend.host;
    for (const url of backend.urls) {
      const key = `${url} ${host}`;
      const known = asked.get(key);
      if (known === undefined) asked.set(key, { url, host, hosts: [name] });
      else known.hosts.push(name);
    }
  }
  const waiting = [...asked.values()];
  const chosen = waiting.slice(0, originsMax);
  const origins: TimedOrigin[] = [];
  const work = chosen.values();
  const ask = async (): Promise<void> => {
    for (const { url, host, hosts: named } of work)
      origins.push({ ...(await timedHead(url, { host })), hosts: named });
  };
  await Promise.all(Array.from({ length: atOnce }, ask));
  return {
    origins: origins.toSorted((one, other) => (one.url < other.url ? -1 : 1)),
    not_asked: waiting.length - chosen.length,
  };
}
