// A file that is received: written while it is hashed and counted, kept only where it is what was announced.

import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import type { Sha256 } from "../../../core/ids.ts";
import type { WriteFailed } from "../objects/object-store.ts";

/** The file is synced where it has the digest. */
export async function writeVerified(
  path: string,
  sha256: Sha256,
  body: AsyncIterable<Uint8Array>,
  bytesMax: number,
): Promise<{ readonly size: number } | WriteFailed> {
  await using file = await open(path, "wx", 0o600);
  const hash = createHash("sha256");
  const chunks = body[Symbol.asyncIterator]();
  let size = 0;
  for (;;) {
    // What the sender does to its stream is an outcome; what the disk does is thrown.
    const next = await chunks.next().catch(() => undefined);
    if (next === undefined) return "aborted";
    if (next.done === true) break;
    size += next.value.byteLength;
    if (size > bytesMax) {
      await chunks.return?.();
      return "too large";
    }
    hash.update(next.value);
    await file.writeFile(next.value);
  }
  if (hash.digest("hex") !== sha256) return "mismatch";
  await file.sync();
  return { size };
}
