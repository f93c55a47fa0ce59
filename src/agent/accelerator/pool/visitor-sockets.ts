// The sockets on which visitors arrive. Main holds them as long as the agent runs, and lends a descriptor of its own to each worker that starts: all workers
// accept from one queue, and a worker that ends, however it ends, takes nobody with it who has not been accepted yet.
//
// A shared number would not do: a worker that ends closes it for all. Nor would a socket for each worker (SO_REUSEPORT): who waits in the queue of one
// that ended waits for ever, or is reset.

import { lookup } from "node:dns/promises";
import { closeSync } from "node:fs";
import { BoundSocket, isIP } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
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
  readonly calls: Pick<SocketCalls, "duplicate" | "endHandshakes" | "endListening">;
  /** Unsaid: nobody keeps sockets over a restart. */
  readonly kept?: Pick<KeptSockets, "take" | "keep" | "closeRest" | "holdsAny">;
  /** Asks whether nothing is started behind a stop of this process, so that nobody is to wait at what is kept. Unsaid: something is. Never throws. */
  readonly isLast?: () => Promise<boolean>;
  /** Told when visitors are accepted no more behind a stop, and whether they wait for the next start. Must not throw. */
  readonly onEnd?: (isStartedAgain: boolean) => void;
  /** The agent before, which this process waits for when it stops. Unsaid: there is none. */
  readonly before?: { readonly gone: () => Promise<unknown> } | undefined;
};

/** The descriptors of one worker, which it closes. */
export type LentSockets = { readonly plain: number; readonly secure: number | null };

/** Connections that waited at a socket when listening ended, as descriptors. */
export type LateVisitors = {
  readonly plain: readonly number[];
  readonly secure: readonly number[];
};

type Held = { readonly address: ListenAddress; readonly fd: number; readonly isNew: boolean };

export class VisitorSockets implements Disposable {
  /** The addresses that were kept, and that no setting names any more. */
  readonly closed: readonly string[];
  readonly #plain: Held;
  readonly #secure: Held | null;
  readonly #keeping: SocketKeeping;
  #isOpen = true;

  private constructor(
    keeping: SocketKeeping,
    {
      plain,
      secure,
      closed,
    }: { readonly plain: Held; readonly secure: Held | null; readonly closed: readonly string[] },
  ) {
    this.#keeping = keeping;
    this.#plain = plain;
    this.#secure = secure;
    this.closed = closed;
  }

  /**
   * Takes the sockets that were kept, and binds the others; port 0 takes a free one. A socket that is new is not listened on before a worker does. Throws
   * PORT_TAKEN, ADDRESS_UNUSABLE or DESCRIPTORS_USED_UP.
   */
  static async open(
    { listen, tlsListen = null }: Listens,
    keeping: SocketKeeping,
  ): Promise<VisitorSockets> {
    const wanted = await Promise.all([listen, tlsListen].map(resolved));
    const taken = wanted.map((address) =>
      address === null ? undefined : keeping.kept?.take(address),
    );
    // First of all: what stays open at one address may be in the way of another one at the same port.
    const closed = (await keeping.kept?.closeRest()) ?? [];
    const made: number[] = [];
    const hold = async (at: number, address: ListenAddress): Promise<Held> => {
      const found = taken[at];
      const numeric = wanted[at] ?? address;
      if (found !== undefined) return { address, fd: found, isNew: false };
      const bound = await bind(numeric, address, keeping.calls, closed.length > 0);
      made.push(bound.fd);
      return { ...bound, isNew: true };
    };
    try {
      const plain = await hold(0, listen);
      const secure = tlsListen === null ? null : await hold(1, tlsListen);
      return new VisitorSockets(keeping, { plain, secure, closed });
    } catch (error) {
      for (const fd of [...made, ...taken]) if (fd !== undefined) closeSync(fd);
      throw error;
    }
  }

  get listen(): ListenAddress {
    return this.#plain.address;
  }

  get tlsListen(): ListenAddress | null {
    return this.#secure?.address ?? null;
  }

  /** Whether who comes after the end of this process waits for the next one, unless it is the last one. */
  get areKept(): boolean {
    return this.#keeping.kept?.holdsAny === true;
  }

  /** Whether visitors are to be refused when this process stops. */
  async isLast(): Promise<boolean> {
    return !(await isNextAwaited(this.#keeping));
  }

  /**
   * For a stop, and not for a start that fails, which gives back what is kept. If this process is the last one, it refuses whoever comes from now on, and returns who
   * waited, as a share for each of so many workers. Otherwise who comes is served until the agent before has ended: the next start is not before that.
   */
  async end(workers: number): Promise<readonly LateVisitors[]> {
    const isLast = await this.isLast();
    const { before, onEnd } = this.#keeping;
    if (!isLast) await before?.gone();
    if (this.areKept) onEnd?.(!isLast);
    if (!isLast) return [];
    for (const fd of this.#descriptors()) this.#keeping.calls.endHandshakes(fd);
    await sleep(handshakeMs);
    return dealt(this.refuse(), workers);
  }

  /** Refuses whoever comes from now on, whichever processes and systemd have the sockets as well. Returns who waited, as the caller's descriptors. */
  refuse(): LateVisitors {
    if (!this.#isOpen) return { plain: [], secure: [] };
    const { calls } = this.#keeping;
    return {
      plain: calls.endListening(this.#plain.fd),
      secure: this.#secure === null ? [] : calls.endListening(this.#secure.fd),
    };
  }

  /** Throws DESCRIPTORS_USED_UP; STOPPING when it is disposed: the numbers are somebody else's then. */
  lend(): LentSockets {
    if (!this.#isOpen) throw new AccelError("STOPPING", "the agent stops");
    const { calls } = this.#keeping;
    const plain = calls.duplicate(this.#plain.fd);
    try {
      return { plain, secure: this.#secure === null ? null : calls.duplicate(this.#secure.fd) };
    } catch (error) {
      closeSync(plain);
      throw error;
    }
  }

  /** Has what is new kept over a restart. Workers listen by then. */
  async keep(): Promise<void> {
    const { kept } = this.#keeping;
    for (const held of [this.#plain, this.#secure])
      if (held?.isNew === true) await kept?.keep(held.address, held.fd);
  }

  #descriptors(): readonly number[] {
    if (!this.#isOpen) return [];
    return this.#secure === null ? [this.#plain.fd] : [this.#plain.fd, this.#secure.fd];
  }

  /** Ends main's hold. What is kept goes on queueing visitors for the next start; otherwise the sockets close with the last worker's. */
  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    const descriptors = this.#descriptors();
    this.#isOpen = false;
    for (const fd of descriptors) closeSync(fd);
  }
}

/** Whether who comes behind a stop of this process waits for the next one. Never throws. */
export async function isNextAwaited({ kept, isLast }: SocketKeeping): Promise<boolean> {
  return kept?.holdsAny === true && (await isLast?.()) !== true;
}

/** A way to a visitor far away and back: handshakes under way end within it, and would be reset at the end of listening. */
const handshakeMs = 300;

/** Where there is no worker, all are closed. */
function dealt({ plain, secure }: LateVisitors, workers: number): readonly LateVisitors[] {
  if (workers === 0) for (const fd of [...plain, ...secure]) closeSync(fd);
  const share = (fds: readonly number[], no: number): readonly number[] =>
    fds.filter((_, i) => i % workers === no);
  return Array.from({ length: workers }, (_, no) => ({
    plain: share(plain, no),
    secure: share(secure, no),
  }));
}

/** systemd closes what it is told to forget a moment later. */
const closedWithinMs = 2_000;

/** Binds `numeric`, which `named` stands for in the settings. `isClosing`: a kept socket that may be in the way is being closed. */
async function bind(
  numeric: ListenAddress,
  named: ListenAddress,
  calls: Pick<SocketCalls, "duplicate">,
  isClosing: boolean,
): Promise<Pick<Held, "address" | "fd">> {
  const place = listenText(named);
  for (const began = performance.now(); ; await sleep(closedLookMs)) {
    try {
      // Its own descriptor closes with it.
      using bound = new BoundSocket(numeric);
      const actual = bound.address();
      const port = typeof actual === "object" ? actual.port : numeric.port;
      return { address: { ...named, port }, fd: calls.duplicate(bound.fd()) };
    } catch (error) {
      if (error instanceof AccelError) throw error;
      const isTaken = systemCode(error) === "EADDRINUSE";
      if (isTaken && isClosing && performance.now() - began < closedWithinMs) continue;
      throw isTaken
        ? new AccelError("PORT_TAKEN", `${place} is in use by another process`)
        : new AccelError("ADDRESS_UNUSABLE", `cannot listen on ${place}: ${messageOf(error)}`);
    }
  }
}

const closedLookMs = 20;

async function resolved(address: ListenAddress | null): Promise<ListenAddress | null> {
  if (address === null || isIP(address.host) !== 0) return address;
  const { host, port } = address;
  try {
    return { host: (await lookup(host)).address, port };
  } catch (error) {
    const place = listenText({ host, port });
    throw new AccelError("ADDRESS_UNUSABLE", `cannot listen on ${place}: ${messageOf(error)}`);
  }
}
