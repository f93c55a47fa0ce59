// Reading a stream of Server-Sent Events (HTML Living Standard, section 9.2.6), as far as central writes them.

import { AccelError } from "../core/faults.ts";
import { parseJson } from "../core/journal/json-text.ts";
import { eventShapes, type ConsoleEvent } from "../wire/customer/events.ts";
import type { Shape } from "../wire/customer/shape.ts";
import { describeErrors } from "../wire/validate.ts";

/** The most characters of one event. */
const eventCharsMax = 65_536;

/** Yields the events of a stream; comments, and events that a later central may send, are left out. */
export async function* readEvents(
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<ConsoleEvent, void, undefined> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of bytes) {
    text += decoder.decode(chunk, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    if (text.length > eventCharsMax)
      throw new AccelError("MESSAGE_INVALID", "an event of central has no end");
    for (const block of blocks) {
      const event = eventOf(block);
      if (event !== undefined) yield event;
    }
  }
}

function eventOf(block: string): ConsoleEvent | undefined {
  const fields = new Map(
    block.split("\n").map((line) => {
      const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
      return [name, value] as const;
    }),
  );
  const [name, data] = [fields.get("event"), fields.get("data")];
  if (data === undefined) return undefined;
  switch (name) {
    case "hello":
      return { event: name, ...decoded(eventShapes[name], data) };
    case "changed":
      return { event: name, ...decoded(eventShapes[name], data) };
    case "beat":
      return { event: name, ...decoded(eventShapes[name], data) };
    case "bye":
      return { event: name, ...decoded(eventShapes[name], data) };
    default:
      return undefined;
  }
}

function decoded<T>({ decode }: Shape<T>, data: string): T {
  const found = decode(parseJson(data));
  if (found.ok) return found.value;
  const faults = describeErrors(found.errors);
  throw new AccelError("MESSAGE_INVALID", `an event of central is not understood: ${faults}`);
}
