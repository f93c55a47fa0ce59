// Instances that are in touch by long polls, because something on their way refuses channels.

/** An agent asks again at once, or after a pause of some seconds where its way answers without waiting. */
const betweenMs = 10_000;
/** As many are remembered whose poll has ended. */
const endedMax = 10_000;

export class Polling {
  readonly #monotonicMs: () => number;
  /** How many polls of an instance wait. */
  readonly #waiting = new Map<string, number>();
  /** When the last poll of an instance ended; the one that ended last comes last. */
  readonly #ended = new Map<string, number>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Notes that an instance waits for news. Dispose of it when its poll is answered, or cut. */
  begin(deploymentSiteId: number, instance: string): Disposable {
    const key = keyOf(deploymentSiteId, instance);
    this.#waiting.set(key, (this.#waiting.get(key) ?? 0) + 1);
    return { [Symbol.dispose]: () => this.#end(key) };
  }

  has(deploymentSiteId: number, instance: string): boolean {
    const key = keyOf(deploymentSiteId, instance);
    if (this.#waiting.has(key)) return true;
    const endedMs = this.#ended.get(key);
    return endedMs !== undefined && this.#monotonicMs() - endedMs < betweenMs;
  }

  /** Those that `has` knows. */
  all(): readonly { readonly siteId: number; readonly instanceId: string }[] {
    const nowMs = this.#monotonicMs();
    const ended = [...this.#ended].filter(([, endedMs]) => nowMs - endedMs < betweenMs);
    return [...new Set([...this.#waiting.keys(), ...ended.map(([key]) => key)])].map((key) => {
      const [siteId = "", instanceId = ""] = key.split(" ");
      return { siteId: Number(siteId), instanceId };
    });
  }

  #end(key: string): void {
    const left = (this.#waiting.get(key) ?? 1) - 1;
    if (left > 0) this.#waiting.set(key, left);
    else this.#waiting.delete(key);
    this.#ended.delete(key);
    this.#ended.set(key, this.#monotonicMs());
    const oldest = this.#ended.size > endedMax ? this.#ended.keys().next().value : undefined;
    if (oldest !== undefined) this.#ended.delete(oldest);
  }
}

function keyOf(deploymentSiteId: number, instance: string): string {
  return `${deploymentSiteId} ${instance}`;
}
