// A whole bot set as it travels: a blob of canonical JSON, verified by its digest before a word of it is believed.

import { createHash } from "node:crypto";
import { AccelError } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { SetElement } from "../../core/set-digest.ts";
import { decodeBotSetContent } from "../../wire/snapshot.ts";
import { describeErrors } from "../../wire/validate.ts";
import type { CentralClient } from "./central-client.ts";

const contentBytesMax = 256 * 2 ** 20; // Two million elements of 100 bytes.

/** Throws BLOB_MISMATCH or MESSAGE_INVALID, and what the client throws. */
export async function getBotSetContent(
  client: Pick<CentralClient, "getBlob">,
  blob: Sha256,
  signal: AbortSignal,
): Promise<readonly SetElement[]> {
  const { chunks: arriving } = await client.getBlob(blob, 0, signal);
  const hash = createHash("sha256");
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of arriving) {
    size += chunk.length;
    if (size > contentBytesMax)
      throw new AccelError(
        "MESSAGE_INVALID",
        `bot set ${blob} is larger than ${contentBytesMax} bytes`,
      );
    hash.update(chunk);
    chunks.push(chunk);
  }
  if (hash.digest("hex") !== blob)
    throw new AccelError("BLOB_MISMATCH", `bot set ${blob} arrived with another digest`);
  const decoded = decodeBotSetContent(JSON.parse(Buffer.concat(chunks).toString("utf8")));
  if (!decoded.ok)
    throw new AccelError("MESSAGE_INVALID", `bot set ${blob}: ${describeErrors(decoded.errors)}`);
  return decoded.value;
}
