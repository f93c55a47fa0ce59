// Answering with what the origin says, while it says it: the head, the body at the visitor's pace.

import type { SiteConfig } from "../../../core/serving/effective-devlove.ts";
import {
  fieldValue,
  fieldValues,
  withoutFields,
  withoutHopByHop,
  type Field,
} from "../../../core/http/http-fields.ts";
import { cacheStatus, withSiteHeaders, writeChunk, writeHead } from "../doors/answer.ts";
import type { Exchange } from "../doors/exchange.ts";
import type { OriginAnswer } from "./origin-pools.ts";

/** Names that are ours to say, or that the length of the body as it is sent makes. */
const ours: ReadonlySet<string> = new Set(["x-accel-decision"]);

/** Not to be sent with 204 (RFC 9110 §8.6). */
const length: ReadonlySet<string> = new Set(["content-length"]);

/** What of an origin's head is passed on and stored. */
export function passedFields(answer: OriginAnswer): readonly Field[] {
  const fields = withoutFields(withoutHopByHop(answer.fields), ours);
  return answer.status === 204 ? withoutFields(fields, length) : fields;
}

/** A body whose end can be told from a cut: of stated length, or chunked. */
export function isDelimited({ status, fields }: OriginAnswer): boolean {
  return (
    status === 204 ||
    fieldValue(fields, "content-length") !== undefined ||
    fieldValue(fields, "transfer-encoding") !== undefined
  );
}

/** Undici decodes `chunked` and nothing else. */
export function isReadable({ fields }: OriginAnswer): boolean {
  const coding = fieldValues(fields, "transfer-encoding");
  return coding.length === 0 || (coding.length === 1 && coding[0]?.toLowerCase() === "chunked");
}

/** Throws when the visitor left or the origin cut the body: then the caller breaks the answer. */
export async function relay(
  exchange: Exchange,
  site: SiteConfig,
  answer: OriginAnswer,
  options: {
    /** Differs from the origin's where the visitor has the representation already (304). */
    readonly status: number;
    readonly fields: readonly Field[];
    readonly cacheStatus: string;
  },
): Promise<void> {
  const { status, fields } = options;
  writeHead(exchange, status, [
    ...withSiteHeaders(fields, site.headers),
    cacheStatus(options.cacheStatus),
  ]);
  if (exchange.method !== "HEAD" && status !== 204 && status !== 304) await pump(exchange, answer);
  exchange.response.end();
}

async function pump(exchange: Exchange, answer: OriginAnswer): Promise<void> {
  const length = fieldValue(answer.fields, "content-length");
  let received = 0;
  for await (const chunk of answer.body) {
    // A byte stream gives buffers; its type says any.
    const bytes = chunk as Uint8Array;
    received += bytes.length;
    await writeChunk(exchange, bytes);
  }
  if (length !== undefined && received !== Number(length))
    throw new Error(`the origin sent ${received} of ${length} bytes`);
}
