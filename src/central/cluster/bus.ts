// The bus between the centrals at one store. Messages are hints: one that is lost costs a moment, for whoever may have missed one is told, and asks the store.
//
// What is told within 5 ms goes out together: a clear to a thousand sites, or their receipts, are a few notices and not a thousand.

import { setTimeout as sleepFor } from "node:timers/promises";
import type { Log } from "../../base/log.ts";
import { sleep } from "../../base/wait.ts";
import { messageOf } from "../../core/faults.ts";
import { decodeBusMessage, type BusMessage } from "../../wire/bus-message.ts";
import { asciiJson, framesOf, messageCharsMax, Unframer } from "./frames.ts";

const gatherMs = 5;
/** A way that fails and is not lost is tried again after so long. */
const failedPauseMs = 500;
/** What waits for a way that is slow. More is lost, and is told to be. */
const waitingCharsMax = 16 * 2 ** 20;

/** All centrals listen to it. */
export const commonChannel = "accel_centrals";
/** Only the central with this id listens to it. */
export const channelOfCentral = (id: string): string => `accel_central_${id}`;

export type BusNotice = { readonly channel: string; readonly text: string };
/** The way to the others: notices of PostgreSQL, or a fake in tests. */
export type NoticeWay = AsyncDisposable & {
  /** Rejects where it is not known whether the notices went out. */
  send(notices: readonly BusNotice[]): Promise<void>;
};
export type OpenNoticeWay = (given: {
  readonly channels: readonly string[];
  readonly onNotice: (text: string) => void;
  readonly onState: (state: "lost" | "back", error?: unknown) => void;
}) => Promise<NoticeWay>;

export type BusOptions = {
  /** Of this central: `centralIdForm`. */
  readonly id: string;
  readonly openWay: OpenNoticeWay;
  readonly log: Log;
  /** Called when the way to the others is lost and when it is there again; must not throw. */
  readonly onState?: (state: "lost" | "back", error?: unknown) => void;
  /** Called with how many messages went out or came in. */
  readonly onCount?: (direction: "sent" | "heard" | "lost", count: number) => void;
};

type Listener = (message: BusMessage, from: string) => void;

export class CentralBus implements AsyncDisposable {
  readonly id: string;
  readonly #options: BusOptions;
  readonly #unframer = new Unframer();
  readonly #listeners = new Set<Listener>();
  readonly #missed = new Set<() => void>();
  /** Texts by channel. */
  #waiting = new Map<string, string[]>();
  #waitingChars = 0;
  #isMissing = false;
  #isLost = false;
  #no = 0;
  readonly #ending = new AbortController();
  #way: NoticeWay | undefined;
  #sending: Promise<void> | undefined;

  private constructor(options: BusOptions) {
    this.id = options.id;
    this.#options = options;
  }

  /** Throws what connecting throws. */
  static async open(options: BusOptions): Promise<CentralBus> {
    const bus = new CentralBus(options);
    bus.#way = await options.openWay({
      channels: [commonChannel, channelOfCentral(options.id)],
      onNotice: (text) => bus.#heard(text),
      onState: (state, error) => bus.#changed(state, error),
    });
    return bus;
  }

  /** Tells all other centrals, after the commit of what it is about. Never throws. */
  tell(message: BusMessage): void {
    this.#put(commonChannel, message);
  }

  /** Tells one of them. */
  tellOne(central: string, message: BusMessage): void {
    this.#put(channelOfCentral(central), message);
  }

  /** Calls the listener with what others tell; it must not throw. */
  hear(listener: Listener): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => this.#listeners.delete(listener) };
  }

  /** Calls the listener when something of others may have been missed; it must not throw. */
  onMissed(listener: () => void): Disposable {
    this.#missed.add(listener);
    return { [Symbol.dispose]: () => this.#missed.delete(listener) };
  }

  /** Forgets what a central that is gone has begun to say. */
  forget(central: string): void {
    this.#unframer.forget(central);
  }

  /** Resolves when what was told before is out, or lost. */
  async flushed(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
  }

  /** Tells what was told before, if that goes at once. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.flushed();
    await this.#way?.[Symbol.asyncDispose]();
  }

  #put(channel: string, message: BusMessage): void {
    const text = asciiJson(message);
    if (
      this.#isLost ||
      text.length > messageCharsMax ||
      this.#waitingChars + text.length > waitingCharsMax
    ) {
      this.#lose(1);
      return;
    }
    const texts = this.#waiting.get(channel) ?? [];
    texts.push(text);
    this.#waiting.set(channel, texts);
    this.#waitingChars += text.length;
    this.#begin();
  }

  #begin(): void {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
      const isOwing = this.#isMissing && !this.#isLost && !this.#ending.signal.aborted;
      if (this.#waiting.size > 0 || isOwing) this.#begin();
    });
  }

  #lose(count: number): void {
    this.#isMissing = true;
    this.#options.onCount?.("lost", count);
    if (!this.#isLost) this.#begin();
  }

  /** Never rejects. */
  async #send(): Promise<void> {
    await sleepFor(gatherMs);
    const waiting = this.#waiting;
    this.#waiting = new Map();
    this.#waitingChars = 0;
    const wasMissing = this.#isMissing;
    this.#isMissing = false;
    if (wasMissing) {
      const missed = asciiJson({ kind: "missed" } satisfies BusMessage);
      waiting.set(commonChannel, [missed, ...(waiting.get(commonChannel) ?? [])]);
    }
    const notices: BusNotice[] = [];
    let count = 0;
    for (const [channel, texts] of waiting) {
      const { frames, nextNo } = framesOf(this.id, texts, this.#no);
      this.#no = nextNo;
      count += texts.length;
      for (const text of frames) notices.push({ channel, text });
    }
    try {
      await this.#way?.send(notices);
      this.#options.onCount?.("sent", count);
    } catch (error) {
      this.#isMissing = true;
      this.#options.onCount?.("lost", count);
      this.#options.log.debug({ reason: messageOf(error) }, "a word to the other centrals is lost");
      await sleep(failedPauseMs, this.#ending.signal);
    }
  }

  #changed(state: "lost" | "back", error: unknown): void {
    this.#isLost = state === "lost";
    this.#unframer.clear();
    this.#options.onState?.(state, error);
    if (state === "lost") {
      this.#isMissing = true;
      return;
    }
    this.#begin();
    for (const listener of this.#missed) listener();
  }

  #heard(frame: string): void {
    const whole = this.#unframer.take(frame);
    if (whole === undefined || whole.from === this.id) return;
    this.#options.onCount?.("heard", whole.texts.length);
    for (const text of whole.texts) {
      const message = parse(text);
      // A central of another release says what is not known here.
      if (message === undefined) continue;
      if (message.kind === "missed") for (const listener of this.#missed) listener();
      else for (const listener of this.#listeners) listener(message, whole.from);
    }
  }
}

function parse(text: string): BusMessage | undefined {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    return undefined;
  }
  const decoded = decodeBusMessage(raw);
  return decoded.ok ? decoded.value : undefined;
}
