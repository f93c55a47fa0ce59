// The shared worker: it holds the one event stream of a browser, however many tabs are open, for browsers allow six connections to a host.

import { openLiveStream } from "./live-stream.ts";
import type { Told } from "./topics.ts";

const ports = new Set<MessagePort>();
let close: (() => void) | undefined;
let last: Told = { kind: "live", isLive: false };

function tell(told: Told): void {
  if (told.kind === "live") last = told;
  if (told.kind === "bye") close = undefined; // The next tab that comes has signed in anew.
  for (const port of ports) port.postMessage(told);
}

function end(): void {
  close?.();
  close = undefined;
}

self.addEventListener("connect", (event) => {
  const [port] = (event as MessageEvent).ports;
  if (port === undefined) return;
  ports.add(port);
  port.addEventListener("message", ({ data }) => {
    if (data !== "gone") return;
    ports.delete(port);
    if (ports.size === 0) end();
  });
  port.start();
  port.postMessage(last);
  close ??= openLiveStream(tell);
});
