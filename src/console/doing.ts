// A change that a page makes: one at a time, with what came of it.

import { useCallback, useEffect, useState } from "preact/hooks";
import { Refusal, refusalFrom } from "./api.ts";
import { onBack } from "./live.ts";

export type Doing = {
  readonly isBusy: boolean;
  readonly failure: Refusal | undefined;
  /** Does it, and returns whether it was done. A second call while one is under way does nothing. */
  readonly run: (action: () => Promise<void>) => Promise<boolean>;
};

export function useDoing(): Doing {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Refusal>();
  // That central could not be reached is over then.
  useEffect(
    () => onBack(() => setFailure((before) => (before?.status === 0 ? undefined : before))),
    [],
  );
  const run = useCallback(
    async (action: () => Promise<void>): Promise<boolean> => {
      if (isBusy) return false;
      setBusy(true);
      setFailure(undefined);
      try {
        await action();
        return true;
      } catch (error) {
        setFailure(refusalFrom(error));
        return false;
      } finally {
        setBusy(false);
      }
    },
    [isBusy],
  );
  return { isBusy, failure, run };
}
