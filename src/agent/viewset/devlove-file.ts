// Reads a devlove file of this host: one state of it, of bounded size, through a link too.

import { AccelError } from "../../core/faults.ts";
import { devloveBytesMax } from "../../core/serving/devlove.ts";
import { invalidDevlove } from "./devlove-text.ts";
import { systemReason } from "./site-walk.ts";
import { readStillBytes, sourceAt, whileStill } from "./still-file.ts";

/**
 * Returns the bytes, or why there are none: VIEWSET_INVALID for a document that is too large,
 * IMPORT_IMPOSSIBLE for anything else. Throws only the reason of `signal`.
 */
export async function readDevloveFile(
  path: string,
  signal: AbortSignal,
): Promise<Uint8Array | AccelError> {
  const impossible = (reason: string): AccelError =>
    new AccelError("IMPORT_IMPOSSIBLE", `devlove_file ${path} ${reason}`);
  try {
    const source = sourceAt(path);
    const read = await whileStill<Uint8Array | AccelError>(source, signal, async (opened) => {
      const { stats } = opened;
      if (!stats.isFile()) return impossible("is no regular file");
      if (stats.size <= devloveBytesMax) return readStillBytes(opened, devloveBytesMax, signal);
      const reason = `the document has ${stats.size} bytes, at most 1 MiB (${devloveBytesMax} bytes) is possible`;
      return invalidDevlove(`devlove_file ${path}`, [reason]);
    });
    return read ?? impossible("keeps changing while it is read");
  } catch (error) {
    signal.throwIfAborted();
    return impossible(systemReason(error));
  }
}
