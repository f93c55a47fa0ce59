// The shared worker: it holds the one event stream of a browser, however many tabs are open, for browsers allow six connections to a host.

import { openLiveStream } from "./live-stream.ts";
import type { Said, Told } from "./topics.ts";

const ports = new Set<MessagePort>();
/** Whose stream is open: a stream stays that of the session that opened it, whatever cookie came since. */
let stream: { readonly session: string; readonly close: () => void } | undefined;
let last: Told = { kind: "live", isLive: false };

function tell(told: Told): void {
  if (told.kind === "live") last = told;
  if (told.kind === "bye") stream = undefined; // The next tab that comes has signed in anew.
  for (const port of ports) port.postMessage(told);
}

function end(): void {
  stream?.close();
  stream = undefined;
}

self.addEventListener("connect", (event) => {
  const [port] = (event as MessageEvent).ports;
  if (port === undefined) return;
  port.addEventListener("message", ({ data }) => {
    const said = data as Said;
    if (said.kind === "gone") {
      ports.delete(port);
      if (ports.size === 0) end();
      return;
    }
    ports.add(port);
    const { session } = said;
    if (stream?.session !== session) {
      end();
      stream = { session, close: openLiveStream(tell) };
    }
    port.postMessage(last);
  });
  port.start();
});
