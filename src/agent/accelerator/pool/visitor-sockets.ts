// The sockets on which visitors arrive. Main holds them as long as the agent runs, and lends a descriptor of its own to each worker that starts: all workers
// accept from one queue, and a worker that ends, however it ends, takes nobody with it who has not been accepted yet.
//
// A shared number would not do: a worker that ends closes it for all. Nor would a socket for each worker (SO_REUSEPORT): who waits in the queue of one
// that ended waits for ever, or is reset.

import { lookup } from "node:dns/promises";
import { closeSync } from "node:fs";
import { BoundSocket, isIP } from "node:net";
import { listenText, type ListenAddress } from "../../../base/settings-fields.ts";
import type { SocketCalls } from "../../../base/socket-calls.ts";
import type { KeptSockets } from "../../../base/kept-sockets.ts";
import { AccelError, messageOf, systemCode } from "../../../core/faults.ts";

/** The addresses at which visitors arrive. */
export type Listens = {
  readonly listen: ListenAddress;
  /** Null or absent: HTTPS is not served. */
  readonly tlsListen?: ListenAddress | null;
};

export type SocketKeeping = {
  readonly calls: Pick<SocketCalls, "duplicate">;
  /** Unsaid: nobody keeps sockets over a restart. */
  readonly kept?: Pick<KeptSockets, "take" | "keep" | "closeRest" | "holdsAny">;
};

/** The descriptors of one worker, which it closes. */
export type LentSockets = { readonly plain: number; readonly secure: number | null };

type Held = { readonly address: ListenAddress; readonly fd: number; readonly isNew: boolean };

export class VisitorSockets implements Disposable {
  readonly #plain: Held;
  readonly #secure: Held | null;
  readonly #keeping: SocketKeeping;
  #isOpen = true;

  private constructor(keeping: SocketKeeping, plain: Held, secure: Held | null) {
    this.#keeping = keeping;
    this.#plain = plain;
    this.#secure = secure;
  }

  /**
   * Takes the sockets that were kept, and binds the others; port 0 takes a free one. A socket that is new is not listened on before a worker does. Throws
   * PORT_TAKEN, ADDRESS_UNUSABLE or DESCRIPTORS_USED_UP.
   */
  static async open(
    { listen, tlsListen = null }: Listens,
    keeping: SocketKeeping,
  ): Promise<VisitorSockets> {
    const plain = await hold(listen, keeping);
    try {
      const secure = tlsListen === null ? null : await hold(tlsListen, keeping);
      return new VisitorSockets(keeping, plain, secure);
    } catch (error) {
      closeSync(plain.fd);
      throw error;
    }
  }

  get listen(): ListenAddress {
    return this.#plain.address;
  }

  get tlsListen(): ListenAddress | null {
    return this.#secure?.address ?? null;
  }

  /** Whether who comes after the end of this process waits for the next one. */
  get areKept(): boolean {
    return this.#keeping.kept?.holdsAny === true;
  }

  /** Throws DESCRIPTORS_USED_UP. */
  lend(): LentSockets {
    const { calls } = this.#keeping;
    const plain = calls.duplicate(this.#plain.fd);
    try {
      return { plain, secure: this.#secure === null ? null : calls.duplicate(this.#secure.fd) };
    } catch (error) {
      closeSync(plain);
      throw error;
    }
  }

  /** Has what is new kept over a restart, and what no setting names any more closed, whose addresses are returned. Workers listen by then. */
  async keep(): Promise<readonly string[]> {
    const { kept } = this.#keeping;
    for (const held of [this.#plain, this.#secure])
      if (held?.isNew === true) await kept?.keep(held.address, held.fd);
    return (await kept?.closeRest()) ?? [];
  }

  /** Ends main's hold. What is kept goes on queueing visitors for the next start; otherwise the sockets close with the last worker's. */
  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    closeSync(this.#plain.fd);
    if (this.#secure !== null) closeSync(this.#secure.fd);
  }
}

async function hold(wanted: ListenAddress, { calls, kept }: SocketKeeping): Promise<Held> {
  const { host, port } = await resolved(wanted);
  const taken = kept?.take({ host, port });
  if (taken !== undefined) return { address: { ...wanted, port }, fd: taken, isNew: false };
  try {
    // Its own descriptor closes with it.
    using bound = new BoundSocket({ host, port });
    const actual = bound.address();
    const found = typeof actual === "object" ? actual.port : port;
    return { address: { ...wanted, port: found }, fd: calls.duplicate(bound.fd()), isNew: true };
  } catch (error) {
    if (error instanceof AccelError) throw error;
    const place = listenText(wanted);
    throw systemCode(error) === "EADDRINUSE"
      ? new AccelError("PORT_TAKEN", `${place} is in use by another process`)
      : new AccelError("ADDRESS_UNUSABLE", `cannot listen on ${place}: ${messageOf(error)}`);
  }
}

async function resolved({ host, port }: ListenAddress): Promise<ListenAddress> {
  if (isIP(host) !== 0) return { host, port };
  try {
    return { host: (await lookup(host)).address, port };
  } catch (error) {
    const place = listenText({ host, port });
    throw new AccelError("ADDRESS_UNUSABLE", `cannot listen on ${place}: ${messageOf(error)}`);
  }
}
