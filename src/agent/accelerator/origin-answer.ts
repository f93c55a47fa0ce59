// Answering with what the origin says, while it says it: the head, the body at the visitor's pace, a copy into the cache where it may be stored.

import type { SiteConfig } from "../../core/effective-devlove.ts";
import {
  fieldValue,
  fieldValues,
  withoutFields,
  withoutHopByHop,
  type Field,
} from "../../core/http-fields.ts";
import { cacheStatus, withSiteHeaders, writeChunk, writeHead } from "./answer.ts";
import type { Exchange } from "./exchange.ts";
import type { Fill } from "./fill.ts";
import type { OriginAnswer } from "./origin-pools.ts";

/** Names that are ours to say, or that the length of the body as it is sent makes. */
const ours: ReadonlySet<string> = new Set(["x-accel-decision"]);

/** What of an origin's head is passed on and stored. */
export function passedFields(answer: OriginAnswer): readonly Field[] {
  return withoutFields(withoutHopByHop(answer.fields), ours);
}

/** A body whose end can be told from a cut: of stated length, or chunked. */
export function isDelimited({ fields }: OriginAnswer): boolean {
  return (
    fieldValue(fields, "content-length") !== undefined ||
    fieldValue(fields, "transfer-encoding") !== undefined
  );
}

/** Undici decodes `chunked` and nothing else. */
export function isReadable({ fields }: OriginAnswer): boolean {
  const coding = fieldValues(fields, "transfer-encoding");
  return coding.length === 0 || (coding.length === 1 && coding[0]?.toLowerCase() === "chunked");
}

/**
 * `status` differs from the origin's where the visitor has the representation already (304). Throws when the visitor left or the origin
 * cut the body: then nothing is stored, and the caller breaks the answer.
 */
export async function relay(
  exchange: Exchange,
  site: SiteConfig,
  answer: OriginAnswer,
  options: {
    readonly status: number;
    readonly fields: readonly Field[];
    readonly cacheStatus: string;
    readonly fill: Fill | undefined;
  },
): Promise<void> {
  const { fill, status, fields } = options;
  writeHead(exchange, status, [
    ...withSiteHeaders(fields, site.headers),
    cacheStatus(options.cacheStatus),
  ]);
  const hasBody = exchange.method !== "HEAD" && status !== 204 && status !== 304;
  if (!hasBody) exchange.response.end();
  if (!hasBody && fill === undefined) return;
  await pump(exchange, answer, hasBody, fill);
  if (hasBody) exchange.response.end();
}

async function pump(
  exchange: Exchange,
  answer: OriginAnswer,
  toVisitor: boolean,
  fill: Fill | undefined,
): Promise<void> {
  const length = fieldValue(answer.fields, "content-length");
  const expected = length === undefined ? undefined : Number(length);
  let received = 0;
  /** The piece that completes the body waits for the commit; with it the visitor knows that the answer is whole. */
  let last: Uint8Array | undefined;
  for await (const chunk of answer.body) {
    // A byte stream gives buffers; its type says any.
    const bytes = chunk as Uint8Array;
    received += bytes.length;
    await fill?.take(bytes);
    if (!toVisitor) continue;
    if (received === expected && fill !== undefined) last = bytes;
    else await writeChunk(exchange, bytes);
  }
  if (expected !== undefined && received !== expected)
    throw new Error(`the origin sent ${received} of ${expected} bytes`);
  await fill?.commit();
  if (last !== undefined) await writeChunk(exchange, last);
}
