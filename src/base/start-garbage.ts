// What a start leaves behind in the heap of a thread is collected once the thread is idle. V8 would look for it only when the heap had grown to hundreds of megabytes,
// which that of an idle thread never does: a quarter to a third of each heap would be garbage of the start for good.

/** Between two looks at whether the thread is idle. */
const lookMs = 1_000;

export type StartGarbage = {
  /** The first look, from now. Threads that look at different times do not take the processor from each other. */
  readonly firstMs: number;
  /** A thread that is not idle at a look is left alone until the next one: it would do nothing else for some 20 ms. */
  readonly isIdle?: () => boolean;
  /** Used in the place of the collector, which is there where Node runs with `--expose-gc`, as in the units; elsewhere nothing is collected. */
  readonly collect?: ((options: NodeJS.GCOptions) => void) | undefined;
};

/** Collects once, at the first look that finds the thread idle. Disposing ends the looks. */
export function collectStartGarbage({
  firstMs,
  isIdle = () => true,
  collect = globalThis.gc,
}: StartGarbage): Disposable {
  if (collect === undefined) return { [Symbol.dispose]: () => undefined };
  const look = (): void => {
    // Only the last resort gives the emptied pages back to the system.
    if (isIdle()) collect({ type: "major", flavor: "last-resort" });
    else next = later(lookMs);
  };
  const later = (ms: number): NodeJS.Timeout => setTimeout(look, ms).unref();
  let next = later(firstMs);
  return { [Symbol.dispose]: () => clearTimeout(next) };
}
