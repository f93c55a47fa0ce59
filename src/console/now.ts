// The time as a page needs it, which goes on in steps.

import { useEffect, useState } from "preact/hooks";

/** Returns the time in whole steps, in seconds since the epoch, so that a question stays the same until its answer may differ. */
export function useNow(stepMs: number): number {
  const stepped = (): number => Math.ceil(Date.now() / stepMs) * (stepMs / 1_000);
  const [nowS, setNow] = useState(stepped);
  useEffect(() => {
    const timer = setInterval(() => setNow(stepped()), stepMs);
    return () => clearInterval(timer);
  }, [stepMs]);
  return nowS;
}
