// Keys of session tickets: one for all workers, so that a visitor resumes wherever he arrives; replaced every 12 hours, the one before still opens what
// it closed. They live in memory only: after a restart visitors shake hands anew.
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

export class TicketKeyring implements Disposable {
  #keys: TicketKeys = { current: randomBytes(keyBytes), previous: undefined };
  readonly #timer: NodeJS.Timeout;

  /** `onRotated` hears of each new pair. */
  constructor(onRotated: (keys: TicketKeys) => void, rotateMs = rotateMsDefault) {
    this.#timer = setInterval(() => {
      this.#keys = { current: randomBytes(keyBytes), previous: this.#keys.current };
      onRotated(this.#keys);
    }, rotateMs);
    this.#timer.unref();
  }

  get keys(): TicketKeys {
    return this.#keys;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
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
