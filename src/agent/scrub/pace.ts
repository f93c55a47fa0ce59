// How fast a thread may read that nobody waits for: a bound over any tenth of a second, with rests in between, each of which ends at once when it is stopped.

export type ReadPace = {
  /** Rests for as long as these bytes are worth. False: stopped. */
  readonly spend: (bytes: number) => boolean;
};

/** Less is saved up: a rest has to be worth its wake-up. */
const restLeastMs = 20;

/** For a thread that does nothing else: it sleeps. `control`: one Int32; stopped where it is not 0. */
export function createReadPace(bytesPerS: number, control: Int32Array): ReadPace {
  let owedMs = 0;
  return {
    spend: (bytes) => {
      owedMs += (bytes / bytesPerS) * 1_000;
      if (owedMs >= restLeastMs) {
        Atomics.wait(control, 0, 0, owedMs);
        owedMs = 0;
      }
      return Atomics.load(control, 0) === 0;
    },
  };
}
