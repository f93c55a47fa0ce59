// Finds where WebSocket frames end in a stream (RFC 6455 §5.2), for only there may a frame of our own stand. It reads lengths and opcodes and keeps no payload.

/** Two bytes, eight of the length, four of a mask. */
const headBytesMax = 14;
const closeOpcode = 8;

export class FrameEnds {
  /** The head of the frame that is being read, as far as it has come. */
  readonly #head = new Uint8Array(headBytesMax);
  #headBytes = 0;
  /** The bytes of the payload that are still to come. */
  #left = 0;
  #isClosed = false;

  /** Whether the next byte begins a frame. */
  get isAtEnd(): boolean {
    return this.#headBytes === 0 && this.#left === 0;
  }

  /** A Close frame has passed: no frame may follow it (RFC 6455 §5.5.1). */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Takes the next bytes and returns where in them the first frame ends; undefined if none does. */
  take(bytes: Uint8Array): number | undefined {
    let first: number | undefined;
    for (let at = 0; at < bytes.length;) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, bytes.length - at);
        this.#left -= taken;
        at += taken;
      } else {
        this.#head[this.#headBytes++] = bytes[at++] ?? 0;
        if (this.#headBytes < headLength(this.#head, this.#headBytes)) continue;
        this.#left = payloadLength(this.#head);
        this.#isClosed ||= ((this.#head[0] ?? 0) & 0x0f) === closeOpcode;
        this.#headBytes = 0;
      }
      if (this.#left === 0) first ??= at;
    }
    return first;
  }
}

/** Returns the length of a frame's head; at least two, while the second byte has not come. */
function headLength(head: Uint8Array, known: number): number {
  if (known < 2) return 2;
  const second = head[1] ?? 0;
  const short = second & 0x7f;
  const extended = short === 127 ? 8 : short === 126 ? 2 : 0;
  return 2 + extended + (second >= 0x80 ? 4 : 0);
}

function payloadLength(head: Uint8Array): number {
  const short = (head[1] ?? 0) & 0x7f;
  const view = new DataView(head.buffer);
  if (short === 126) return view.getUint16(2);
  // Nobody sends so much that a number would not hold it exactly.
  return short === 127 ? Number(view.getBigUint64(2)) : short;
}

/** Makes an unmasked Close frame, as servers send it. */
export function closeFrame(code: number): Uint8Array {
  return Uint8Array.of(0x80 | closeOpcode, 2, code >> 8, code & 0xff);
}
