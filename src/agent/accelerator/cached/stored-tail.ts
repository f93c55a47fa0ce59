// The rest of a body for a visitor who was too slow for the stream that others share: from the store, once the whole is there.

import type { CommitOutcome, Entry, EntryKey } from "../../cache/entry.ts";
import type { ResponseCache } from "./cache-port.ts";

/** Fails where it was not stored, or is gone already: the visitor has to see that the answer is broken. */
export async function* storedTail(
  cache: ResponseCache,
  key: EntryKey,
  outcome: Promise<CommitOutcome | undefined>,
  fromByte: number,
): AsyncGenerator<Uint8Array> {
  const stored = await outcome;
  const entry = stored?.kind === "stored" ? entryOf(cache, key, stored.id) : undefined;
  const body = entry === undefined ? undefined : await cache.open(entry);
  if (body === undefined) throw new Error("the rest of the body was not stored");
  if (body instanceof Uint8Array) {
    yield body.subarray(fromByte);
    return;
  }
  await using stream = body;
  let at = 0;
  for await (const chunk of stream) {
    const from = Math.max(0, fromByte - at);
    if (from < chunk.length) yield chunk.subarray(from);
    at += chunk.length;
  }
}

function entryOf(cache: ResponseCache, key: EntryKey, id: number): Entry | undefined {
  return cache.find(key).find((entry) => entry.id === id);
}
