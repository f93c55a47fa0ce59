// One event stream of central. It comes again by itself, later each time, and what changed meanwhile is told as a change of everything. A central that hangs keeps its
// connections: who says nothing for longer than a beat of its takes is as good as away.

import type { ChangeTopic } from "../wire/customer/events.ts";
import type { Told } from "./topics.ts";

const path = "/presentation-api/v1/events/";
const waitsMs = [1_000, 2_000, 3_000, 5_000, 10_000];
/** Central says hello at once. */
const helloWithinMs = 10_000;
/** Central beats after 15 s without an event: two may get lost. */
const silentMs = 35_000;

type Source = {
  addEventListener(event: string, heard: (message: Event) => void): void;
  close(): void;
};

/** Begins the stream. Returns what ends it. */
export function openLiveStream(
  tell: (told: Told) => void,
  connect: (url: string) => Source = (url) => new EventSource(url),
): () => void {
  let source: Source | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let wasLive = false;
  let heardMs = Date.now();

  const open = (): void => {
    const opened = connect(path);
    source = opened;
    const lose = (isSilent: boolean): void => {
      opened.close();
      clearTimeout(timer);
      tell({ kind: "live", isLive: false, lost: { sinceMs: heardMs, isSilent } });
      timer = setTimeout(open, waitsMs[Math.min(failures++, waitsMs.length - 1)]);
    };
    const expect = (withinMs: number): void => {
      clearTimeout(timer);
      timer = setTimeout(() => lose(true), withinMs);
    };
    const on = (event: string, heard: (data: string) => void): void =>
      opened.addEventListener(event, (message) => {
        heardMs = Date.now();
        expect(silentMs);
        heard(String((message as MessageEvent).data));
      });
    expect(helloWithinMs);
    on("beat", () => {});
    on("hello", () => {
      failures = 0;
      tell({ kind: "live", isLive: true });
      if (wasLive) tell({ kind: "changed", topics: everyTopic });
      wasLive = true;
    });
    on("changed", (data) => {
      const { topics, domain } = JSON.parse(data) as {
        topics: readonly ChangeTopic[];
        domain?: string;
      };
      tell({ kind: "changed", topics, ...(domain !== undefined && { domain }) });
    });
    on("bye", (data) => {
      const { reason } = JSON.parse(data) as { reason: string };
      if (reason === "stopping") return;
      close();
      tell({ kind: "bye" });
    });
    opened.addEventListener("error", () => lose(false));
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
