// Keys of session tickets: one for all workers, so that a visitor resumes wherever he arrives; replaced every 12 hours, the one before still opens what
// it closed. They outlive a restart (pool/ticket-key-file.ts), and no key is used longer for it.
//
//   key (48 bytes)   16 name | 16 HMAC-SHA-256 | 16 AES-128-CBC

import { randomBytes } from "node:crypto";
import type { Server } from "node:tls";

export type TicketKeys = {
  readonly current: Uint8Array;
  /** Opens tickets, which are renewed under the current one. */
  readonly previous: Uint8Array | undefined;
};

const keyBytes = 48;
const rotateMsDefault = 12 * 3_600_000;

/** With the time at which the current key was made, by the wall clock. */
export type KeptTicketKeys = TicketKeys & { readonly madeMs: number };

export type TicketKeyringOptions = {
  /** Those of before the restart. */
  readonly kept?: KeptTicketKeys | undefined;
  /** Hears of each new pair, the first one included. */
  readonly onMade: (keys: KeptTicketKeys) => void;
  readonly nowMs?: () => number;
  readonly rotateMs?: number;
};

export class TicketKeyring implements Disposable {
  readonly #onMade: (keys: KeptTicketKeys) => void;
  readonly #nowMs: () => number;
  readonly #rotateMs: number;
  #keys: KeptTicketKeys;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: TicketKeyringOptions) {
    const { kept, onMade, nowMs = Date.now, rotateMs = rotateMsDefault } = options;
    this.#onMade = onMade;
    this.#nowMs = nowMs;
    this.#rotateMs = rotateMs;
    // Keys from the future are worth nothing: nobody knows how old they are.
    const ageMs = kept === undefined ? -1 : nowMs() - kept.madeMs;
    const opens = ageMs >= 0 && ageMs < 2 * rotateMs ? kept : undefined;
    const isCurrent = opens !== undefined && ageMs < rotateMs;
    this.#keys = isCurrent ? opens : this.#made(opens?.current);
    if (!isCurrent) onMade(this.#keys);
    this.#wait(this.#keys.madeMs + rotateMs - nowMs());
  }

  get keys(): TicketKeys {
    return this.#keys;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #made(previous: Uint8Array | undefined): KeptTicketKeys {
    return { madeMs: this.#nowMs(), current: randomBytes(keyBytes), previous };
  }

  /** By the monotonic clock from here on: no jump of the other one makes a key last longer. */
  #wait(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#keys = this.#made(this.#keys.current);
      this.#onMade(this.#keys);
      this.#wait(this.#rotateMs);
    }, ms).unref();
  }
}

/** 1: known; 2: known, and to be renewed; 0: unknown, a full handshake. */
type Opened = readonly [kind: 0 | 1 | 2, hmac: Uint8Array, aes: Uint8Array];
type Sealed = readonly [...Opened, name: Uint8Array, iv: Uint8Array];
type TicketCallback = (name: Uint8Array, iv: Uint8Array, seals: boolean) => Opened | Sealed;

/**
 * What Node has to tell several keys apart. It is not documented. Where it is missing, only the current key
 * opens tickets, and other connections shake hands anew.
 */
type TicketContext = {
  readonly enableTicketKeyCallback?: () => void;
  onticketkeycallback?: TicketCallback;
};

/** `keys` is asked at each handshake. Returns what is to be called when they have changed. */
export function useTicketKeys(server: Server, keys: () => TicketKeys): () => void {
  // The context that all connections of the server begin with.
  const { _sharedCreds: credentials } = server as { _sharedCreds?: { context?: TicketContext } };
  const context = credentials?.context;
  if (typeof context?.enableTicketKeyCallback !== "function") {
    const set = (): void => server.setTicketKeys(Buffer.from(keys().current));
    set();
    return set;
  }
  context.onticketkeycallback = (name, _iv, seals) => ticket(keys(), name, seals);
  context.enableTicketKeyCallback();
  return () => {};
}

function ticket(
  { current, previous }: TicketKeys,
  name: Uint8Array,
  seals: boolean,
): Opened | Sealed {
  const [ownName, hmac, aes] = parts(current);
  if (seals) return [1, hmac, aes, ownName, randomBytes(16)];
  if (isNamed(current, name)) return [1, hmac, aes];
  if (previous === undefined || !isNamed(previous, name)) return [0, hmac, aes];
  const [, hmacBefore, aesBefore] = parts(previous);
  return [2, hmacBefore, aesBefore];
}

/** Buffers: Node's own code asks for nothing less. */
function parts(key: Uint8Array): readonly [name: Buffer, hmac: Buffer, aes: Buffer] {
  const bytes = Buffer.from(key);
  return [bytes.subarray(0, 16), bytes.subarray(16, 32), bytes.subarray(32, 48)];
}

function isNamed(key: Uint8Array, name: Uint8Array): boolean {
  return parts(key)[0].equals(name);
}
