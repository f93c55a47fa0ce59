// What a start leaves behind in the heap of a thread is collected once the thread is idle. V8 would look for it only when the heap had grown to hundreds of megabytes,
// which that of an idle thread never does: a quarter to a third of each heap would be garbage of the start for good. Code that was not run between
// several collections V8 forgets as well, and compiles anew when it is called: of main's code two thirds. Before that it is written for the next start, where
// NODE_COMPILE_CACHE says: Node does it at the end, and never where it is killed.

import { flushCompileCache } from "node:module";

/** Between two looks at whether the thread is idle. */
const lookMs = 1_000;
/** Two collections make code old, the third drops it, and the fourth gives its pages back. Not for a thread for which visitors wait: to compile anew takes milliseconds. */
export const timesToForget = 4;

export type StartGarbage = {
  /** The first look, from now. Threads that look at different times do not take the processor from each other. */
  readonly firstMs: number;
  /** A thread that is not idle at a look is left alone until the next one: it would do nothing else for some 20 ms. */
  readonly isIdle?: () => boolean;
  /** How often it collects, a second apart; with `timesToForget` code that only the start ran is gone too. Once unless it is said. */
  readonly times?: number;
  /** Used in the place of the collector, which is there where Node runs with `--expose-gc`, as in the units; elsewhere nothing is collected. */
  readonly collect?: ((options: NodeJS.GCOptions) => void) | undefined;
  /** Used in the place of what writes the code. It is called once, whether the thread is idle or not: it takes as long as a collection, and only at the first start of a release. */
  readonly keepCode?: () => void;
};

/** Collects once, or so often, at the first looks that find the thread idle. Disposing ends the looks. */
export function collectStartGarbage({
  firstMs,
  isIdle = () => true,
  times = 1,
  collect = globalThis.gc,
  keepCode = flushCompileCache,
}: StartGarbage): Disposable {
  if (collect === undefined) return { [Symbol.dispose]: () => undefined };
  let left = times;
  let isKept = false;
  const look = (): void => {
    if (!isKept) keepCode();
    isKept = true;
    if (isIdle()) {
      // Only the last resort gives the emptied pages back to the system.
      collect({ type: "major", flavor: "last-resort" });
      left--;
    }
    if (left > 0) next = later(lookMs);
  };
  const later = (ms: number): NodeJS.Timeout => setTimeout(look, ms).unref();
  let next = later(firstMs);
  return { [Symbol.dispose]: () => clearTimeout(next) };
}
