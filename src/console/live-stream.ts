// One event stream of central. It comes again by itself, later each time, and what changed meanwhile is told as a change of everything.

import type { ChangeTopic } from "../wire/customer/events.ts";
import type { Told } from "./topics.ts";

const path = "/presentation-api/v1/events/";
const waitsMs = [1_000, 2_000, 3_000, 5_000, 10_000];

/** Begins the stream. Returns what ends it. */
export function openLiveStream(tell: (told: Told) => void): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let wasLive = false;

  const open = (): void => {
    const opened = new EventSource(path);
    source = opened;
    opened.addEventListener("hello", () => {
      failures = 0;
      tell({ kind: "live", isLive: true });
      if (wasLive) tell({ kind: "changed", topics: everyTopic });
      wasLive = true;
    });
    opened.addEventListener("changed", ({ data }) => {
      const { topics, domain } = JSON.parse(data) as {
        topics: readonly ChangeTopic[];
        domain?: string;
      };
      tell({ kind: "changed", topics, ...(domain !== undefined && { domain }) });
    });
    opened.addEventListener("bye", ({ data }) => {
      const { reason } = JSON.parse(data) as { reason: string };
      if (reason === "stopping") return;
      close();
      tell({ kind: "bye" });
    });
    opened.addEventListener("error", () => {
      opened.close();
      tell({ kind: "live", isLive: false });
      timer = setTimeout(open, waitsMs[Math.min(failures++, waitsMs.length - 1)]);
    });
  };
  const close = (): void => {
    clearTimeout(timer);
    source?.close();
  };
  open();
  return close;
}

/** A topic that is missing here does not compile. */
const topics: Readonly<Record<ChangeTopic, true>> = {
  alerts: true,
  bots: true,
  certificates: true,
  channels: true,
  clears: true,
  customer: true,
  domains: true,
  enrolments: true,
  fleet: true,
  sites: true,
  subscriptions: true,
  tokens: true,
  viewsets: true,
};
const everyTopic = Object.keys(topics) as readonly ChangeTopic[];
