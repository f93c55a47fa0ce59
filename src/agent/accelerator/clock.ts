// Time as an accelerator worker has it.

export type WorkerClock = {
  /** Wall clock, ms since the epoch with a fraction. Steps when the host's clock steps. */
  readonly wallMs: () => number;
  /** Like the wall clock, but never goes back: ages are taken with it. */
  readonly ageMs: () => number;
  /** Monotonic, ms with a fraction, from an arbitrary zero. */
  readonly steadyMs: () => number;
};

/** More than this between the wall clock and our idea of it is a step, not the rounding of `Date.now`. */
const stepMs = 5;

export function createClock(): WorkerClock {
  const startedAt = Date.now();
  const startedSteady = performance.now();
  let offset = startedAt - startedSteady;
  const wallAt = (steady: number): number => {
    const wall = Date.now();
    if (Math.abs(steady + offset - wall) > stepMs) offset = wall - steady;
    return steady + offset;
  };
  return {
    wallMs: () => wallAt(performance.now()),
    ageMs: () => {
      const steady = performance.now();
      return Math.max(wallAt(steady), startedAt + steady - startedSteady);
    },
    steadyMs: () => performance.now(),
  };
}
