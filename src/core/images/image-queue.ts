// Which picture is next, of those that wait for the encoder of a host.

export type WaitingPicture = {
  readonly domain: string;
};

/**
 * Returns the place of the next one: of the domain that had its turn longest ago, the one that came first. So one domain with ten thousand pictures does not hold up another
 * with one. `turns` has the number of each domain's last turn. Undefined: nothing waits.
 */
export function nextPicture(
  waiting: readonly WaitingPicture[],
  turns: ReadonlyMap<string, number>,
): number | undefined {
  let next: number | undefined;
  let least = Infinity;
  for (const [at, { domain }] of waiting.entries()) {
    const turn = turns.get(domain) ?? 0;
    if (turn >= least) continue;
    least = turn;
    next = at;
  }
  return next;
}
