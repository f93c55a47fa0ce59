// A stream of events as the client reads it: cut anywhere, with beats, comments, and events of a later central.

import { expect, test } from "vitest";
import { readEvents } from "../../src/client/events.ts";

const text = [
  'retry: 3000\nevent: hello\ndata: {"username":"ada"}',
  "event: beat\ndata: {}",
  ":",
  'event: later\ndata: {"some":"thing"}',
  'event: beat\ndata: {"at":1}',
  'event: changed\ndata: {"topics":["clears"],"domain":"www.example.com"}',
  'event: bye\ndata: {"reason":"stopping"}',
  "",
].join("\n\n");

async function* chunks(charsMost: number): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < text.length; from += charsMost)
    yield new TextEncoder().encode(text.slice(from, from + charsMost));
}

test.each([1, 7, 10_000])(
  "events come whole, however the stream is cut: each %d bytes",
  async (size) => {
    expect(await Array.fromAsync(readEvents(chunks(size)))).toEqual([
      { event: "hello", username: "ada" },
      { event: "beat" },
      { event: "beat", at: 1 },
      { event: "changed", topics: ["clears"], domain: "www.example.com" },
      { event: "bye", reason: "stopping" },
    ]);
  },
);
