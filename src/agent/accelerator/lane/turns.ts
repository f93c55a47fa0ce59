// Whose turn it is: a connection that has brought many requests at once is answered a few of them at a time, and between two times everybody else is.

/** So many requests of a connection are answered before others have their turn: half a millisecond. */
export const answersATurn = 32;
/** So many of what a read brings, while others wait for their turn: a read of each of five hundred connections would otherwise hold everybody up with 32. */
export const answersInACrowd = 8;
/** A request that node:http has to read takes as long as so many plain ones. */
export const lentWeight = 4;
/** So many connections that wait have a turn before the loop looks for what has come. */
const turnsAtOnce = 4;

type Waiting = { takeTurn(): void };

export class LaneTurns implements Disposable {
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiting>();
  #next: NodeJS.Immediate | undefined;

  /** Whether a connection waits. */
  get areAwaited(): boolean {
    return this.#waiting.size > 0;
  }

  /** Gives the connection a turn behind those that wait already. */
  wait(lane: Waiting): void {
    this.#waiting.add(lane);
    this.#next ??= setImmediate(() => this.#give());
  }

  [Symbol.dispose](): void {
    clearImmediate(this.#next);
    this.#waiting.clear();
  }

  #give(): void {
    this.#next = undefined;
    const first = this.#waiting.values().take(turnsAtOnce).toArray();
    for (const lane of first) {
      this.#waiting.delete(lane);
      lane.takeTurn();
    }
    if (this.#waiting.size > 0) this.#next ??= setImmediate(() => this.#give());
  }
}
