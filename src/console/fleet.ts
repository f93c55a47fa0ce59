// What stands where, as `GET /fleet/` tells it, in the words of the pages.

import { useRef } from "preact/hooks";
import type { Fleet, FleetInstance, FleetSite } from "../wire/customer/fleet.ts";
import { useAsked, type Asked } from "./asked.ts";
import { useLost } from "./live.ts";
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

/** What the links of hosts can be judged by. */
export type LinkStanding = {
  /** Since when agents can have connected to central, in milliseconds since the epoch. Undefined: it does not say. */
  readonly heardSinceMs: number | undefined;
  /** Whether what central told of links can still be so. */
  readonly isKnown: boolean;
};

/** A central that stops loses its hosts first, and may still tell that. */
export const lastWordsMs = 5_000;

export function useStanding({ value, answeredMs = 0 }: Asked<Fleet>): LinkStanding {
  const lost = useLost();
  const knownAfterMs = useRef(0);
  const wasLost = useRef(false);
  const isLost = lost !== undefined;
  if (isLost !== wasLost.current) knownAfterMs.current = countsFromMs(isLost, Date.now());
  wasLost.current = isLost;
  const since = value?.heard_since;
  return {
    heardSinceMs: since === undefined ? undefined : Date.parse(since),
    isKnown: answeredMs >= knownAfterMs.current,
  };
}

/**
 * Returns from when on an answer counts, when central was lost or is back at a moment: what came before says nothing of
 * now. Where a proxy cuts streams alone, answers go on to come, and count.
 */
export function countsFromMs(isLost: boolean, nowMs: number): number {
  return isLost ? nowMs + lastWordsMs : nowMs;
}

/** Hosts come back to a central that was restarted within so long. */
const comingBackMs = 60_000;
/** A host is seen when it says hello, and has its link a moment later. */
const greetingMs = 10_000;

type Seen = Pick<FleetInstance, "link" | "last_seen">;

function isComingBack(
  { link, last_seen: seen }: Seen,
  { heardSinceMs }: LinkStanding,
  nowMs: number,
): boolean {
  if (link !== "none" || heardSinceMs === undefined) return false;
  // A browser's clock that is behind excuses nobody.
  if (nowMs < heardSinceMs || nowMs - heardSinceMs >= comingBackMs) return false;
  const seenMs = Date.parse(seen);
  return seenMs < heardSinceMs || nowMs - seenMs < greetingMs;
}

export function linkWords(
  instance: Seen,
  standing: LinkStanding,
  nowMs: number = Date.now(),
): { readonly tone: Tone; readonly text: string } {
  const { link, last_seen: seen } = instance;
  if (!standing.isKnown) return { tone: "plain", text: "not known" };
  if (link === "channel") return { tone: "good", text: "connected" };
  if (link === "polling") return { tone: "good", text: "polling" };
  if (isComingBack(instance, standing, nowMs)) {
    const isGreeting = Date.parse(seen) >= (standing.heardSinceMs ?? 0);
    return {
      tone: "plain",
      text: isGreeting ? "connecting" : "not heard of since central started",
    };
  }
  return { tone: "bad", text: `away, seen ${distance(Date.parse(seen), nowMs)}` };
}

/** Central notes deliveries every 10 s: a host that delivers all the time is as far behind, and a little more. */
const logsNotedS = 15;

/** When a host last delivered logs, or said that it holds none; how old the oldest of them is central does not know. */
export function logsWords({
  log_lag_seconds: lag,
}: Pick<FleetInstance, "log_lag_seconds">): string {
  return lag === null ? "never" : lag < logsNotedS ? "now" : `${seconds(lag)} ago`;
}

/** Something that needs attention. */
export type Attention = {
  readonly tone: "bad" | "warn";
  readonly text: string;
  readonly hint?: string;
};

/** Returns what needs attention, the worst first. Nothing is said of links that are not known. */
export function attentionOf(
  { sites }: Fleet,
  standing: LinkStanding,
  nowMs: number = Date.now(),
): readonly Attention[] {
  const found = sites.flatMap((site) => [
    ...(site.instances.length === 0 && site.domains.length > 0
      ? [
          {
            tone: "bad" as const,
            text: `${siteName(site)}: no host ever connected; nothing serves ${site.domains.join(", ")} there`,
          },
        ]
      : []),
    ...site.instances.flatMap((instance) => ofInstance(instance, standing, nowMs)),
  ]);
  return found.toSorted((a, b) => a.tone.localeCompare(b.tone));
}

function ofInstance(
  instance: FleetInstance,
  standing: LinkStanding,
  nowMs: number,
): readonly Attention[] {
  const name = hostName(instance);
  const found: Attention[] = instance.warnings.map(({ text, hint }) => ({
    tone: "warn",
    text: `${name}: ${text}`,
    hint,
  }));
  const link = linkWords(instance, standing, nowMs);
  if (instance.link === "none") {
    if (link.tone === "bad") found.push({ tone: "bad", text: `${name} is ${link.text}` });
  } else if (!instance.is_log_agent_reporting_data)
    found.push({ tone: "warn", text: `${name} delivers no request logs` });
  if (instance.is_behind === true)
    found.push({
      tone: "warn",
      text: `${name} runs ${instance.agent_version ?? "an older release"}; there is a newer one`,
    });
  return found;
}
