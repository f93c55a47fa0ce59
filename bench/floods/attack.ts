// What an attack is made of: connections that are kept at a number, opened anew when the server closes them, from a hundred addresses of the loopback network, as
// a crowd would come; and bytes that are written as fast as the server takes them.

import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { host } from "../serving/cases.ts";

export type Victim = { readonly http: number; readonly https: number };

export type Counts = {
  /** Connections that were opened, and those of them that the server closed. */
  opened: number;
  closed: number;
  /** Connections that were never opened, or whose handshake failed. */
  refused: number;
  /** What the attack sends, by its own measure: requests, frames, bytes. */
  sent: number;
};

export type By = "http" | "https" | "h2";

export class Attacker {
  readonly counts: Counts = { opened: 0, closed: 0, refused: 0, sent: 0 };
  readonly #victim: Victim;
  readonly #network: number;
  #no = 0;

  /** `network`, 1 to 254, has the addresses that it comes from: a server may remember those of another attack. */
  constructor(victim: Victim, network: number) {
    this.#victim = victim;
    this.#network = network;
  }

  /**
   * Keeps `count` connections open, `each` of them told to `begin` when it is ready to be written to. One that
   * ends is opened anew after `againMs`.
   */
  keep(count: number, by: By, begin: (socket: Socket) => void, againMs = 20): void {
    for (let no = 0; no < count; no++) this.#open(by, begin, againMs);
  }

  #open(by: By, begin: (socket: Socket) => void, againMs: number): void {
    const no = this.#no++;
    const localAddress = `127.${this.#network}.${Math.floor(no / 10) % 10}.${(no % 10) + 1}`;
    const at = { host: "127.0.0.1", port: this.#victim[by === "http" ? "http" : "https"] };
    let isOpen = false;
    const ready = (): void => {
      isOpen = true;
      this.counts.opened++;
      begin(socket);
    };
    const protocols = by === "h2" ? ["h2"] : ["http/1.1"];
    const secure = { servername: host, rejectUnauthorized: false, ALPNProtocols: protocols };
    // TLS over a socket of its own: node:tls has no word for the local address in its types.
    const carrier = connectPlain({ ...at, localAddress });
    const socket: Socket = by === "http" ? carrier : connectTls({ ...secure, socket: carrier });
    socket.once(by === "http" ? "connect" : "secureConnect", ready);
    for (const one of new Set([socket, carrier])) one.on("error", () => {});
    carrier.once("close", () => {
      if (isOpen) this.counts.closed++;
      else this.counts.refused++;
      setTimeout(() => this.#open(by, begin, againMs), againMs);
    });
  }

  /** Writes what `more` gives, as fast as it is taken, until the connection ends. `worth` is what one piece counts. */
  pour(socket: Socket, worth: number, more: () => Buffer): void {
    const write = (): void => {
      // A turn of its own now and then, so that the other connections have theirs.
      for (let pieces = 0; pieces < 8; pieces++) {
        if (!socket.writable) return;
        this.counts.sent += worth;
        if (!socket.write(more())) {
          // In a turn of its own: a server that takes all at once would leave no time to the timers here.
          socket.once("drain", () => setImmediate(write));
          return;
        }
      }
      setImmediate(write);
    };
    write();
  }
}
