// What a backup asks of a running central: that no file is removed while the connection lasts.

import { once } from "../base/wait.ts";
import type { ControlHandler } from "../base/control-socket.ts";
import type { Blobs } from "./store/objects/object-store.ts";

/** Says that it holds, and then nothing more. It ends at the latest when central stops. */
export function createBackupHold(blobs: Pick<Blobs, "keepAll">, stop: AbortSignal): ControlHandler {
  return async function* (_parameters, gone) {
    using _ = await blobs.keepAll();
    yield { holding: true };
    await once(AbortSignal.any([gone, stop]));
  };
}
