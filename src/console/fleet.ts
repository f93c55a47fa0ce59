// What stands where, as `GET /fleet/` tells it, in the words of the pages.

import type { Fleet, FleetInstance, FleetSite } from "../wire/customer/fleet.ts";
import { useAsked, type Asked } from "./asked.ts";
import type { Tone } from "./parts/pieces.tsx";
import { distance, seconds } from "./words.ts";

export function useFleet(): Asked<Fleet> {
  return useAsked<Fleet>("/fleet/", { topics: ["fleet", "sites", "domains"], everyMs: 20_000 });
}

/** A host as people call it: its name where it is known. */
export function hostName({
  host,
  instance_id: id,
}: Pick<FleetInstance, "host" | "instance_id">): string {
  return host ?? id.slice(0, 8);
}

export function siteName({
  name16,
  deployment_tags: tags,
}: Pick<FleetSite, "name16" | "deployment_tags">): string {
  return tags === "" ? name16 : `${name16} (${tags})`;
}

export function linkWords({ link, last_seen: seen }: FleetInstance): {
  readonly tone: Tone;
  readonly text: string;
} {
  if (link === "channel") return { tone: "good", text: "connected" };
  if (link === "polling") return { tone: "good", text: "polling" };
  return { tone: "bad", text: `away, seen ${distance(Date.parse(seen))}` };
}

/** When a host last delivered logs, or said that it holds none; how old the oldest of them is central does not know. */
export function logsWords({ log_lag_seconds: lag }: FleetInstance): string {
  return lag === null ? "never" : lag < 5 ? "now" : `${seconds(lag)} ago`;
}

/** What needs attention, the worst first. */
export type Attention = {
  readonly tone: "bad" | "warn";
  readonly text: string;
  readonly hint?: string;
};

export function attentionOf({ sites }: Fleet): readonly Attention[] {
  const found = sites.flatMap((site) => [
    ...(site.instances.length === 0 && site.domains.length > 0
      ? [
          {
            tone: "bad" as const,
            text: `${siteName(site)}: no host ever connected; nothing serves ${site.domains.join(", ")} there`,
          },
        ]
      : []),
    ...site.instances.flatMap((instance) => ofInstance(instance)),
  ]);
  return found.toSorted((a, b) => a.tone.localeCompare(b.tone));
}

function ofInstance(instance: FleetInstance): readonly Attention[] {
  const name = hostName(instance);
  const found: Attention[] = instance.warnings.map(({ text, hint }) => ({
    tone: "warn",
    text: `${name}: ${text}`,
    hint,
  }));
  if (instance.link === "none")
    found.push({ tone: "bad", text: `${name} is ${linkWords(instance).text}` });
  else if (!instance.is_log_agent_reporting_data)
    found.push({ tone: "warn", text: `${name} delivers no request logs` });
  if (instance.is_behind === true)
    found.push({
      tone: "warn",
      text: `${name} runs ${instance.agent_version ?? "an older release"}; there is a newer one`,
    });
  return found;
}
