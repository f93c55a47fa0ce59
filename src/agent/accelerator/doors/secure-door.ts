// The HTTPS side of a worker's listener: a handshake with the certificate of the name that is asked for, then on to the protocol that was agreed on. That is HTTP/2
// where the visitor offers it and may have it.
//
// There is no certificate for those who name nothing that is served here: they learn nothing of whom this host serves.

import { createServer, type Server, type TLSSocket } from "node:tls";
import type { Socket } from "node:net";
import type { ProblemLog } from "../records/problem-log.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";
import type { Arrival } from "./exchange.ts";
import {
  minVersion,
  sessionIdContext,
  sessionTimeoutS,
  type SecureContexts,
} from "./secure-contexts.ts";
import type { Staples } from "./staples.ts";
import { useTicketKeys, type TicketKeys } from "./ticket-keys.ts";

export type SecureDoorDeps = {
  readonly contexts: Pick<SecureContexts, "find">;
  readonly ticketKeys: () => TicketKeys;
  readonly staples: Pick<Staples, "find">;
  readonly metrics: WorkerMetrics;
  readonly problems: ProblemLog;
  readonly connectionsMax: number;
  /** Whether a visitor may have HTTP/2 now. */
  readonly mayUseHttp2: (arrival: Arrival) => boolean;
  /** How long a handshake may take; 10 s unless told: a slow phone far away needs 2. */
  readonly handshakeMs?: number | undefined;
  /** Whoever has shaken hands; the socket is the encrypted one. */
  readonly admit: (arrival: Arrival, protocol: "h2" | "http/1.1") => void;
};

const handshakeMsDefault = 10_000;

const protocols = ["h2", "http/1.1"] as const;

/** Fatal, unrecognized_name (RFC 6066 §3), in the clear as everything before ServerHello. */
const unrecognizedName = Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x70]);

export class SecureDoor {
  readonly server: Server;
  readonly #deps: SecureDoorDeps;
  readonly #wrap: readonly ((socket: Socket) => void)[];
  /** The connections whose handshake is not done, by the addresses of both ends. */
  readonly #arriving = new Map<string, Arrival>();
  readonly #keysChanged: () => void;

  constructor(deps: SecureDoorDeps) {
    this.#deps = deps;
    const choose = (socket: TLSSocket, name: string): ReturnType<SecureContexts["find"]> =>
      this.#choose(socket, name);
    const agree = (socket: TLSSocket, offered: readonly string[]): string | undefined =>
      this.#agree(socket, offered);
    this.server = createServer({
      // Called on the socket, as SNICallback is. Without a protocol the handshake fails (RFC 7301 §3.2).
      ALPNCallback(this: TLSSocket, { protocols: offered }) {
        return agree(this, offered);
      },
      // Called on the socket, which is how Node says whose handshake it is.
      SNICallback(this: TLSSocket, name, done) {
        const context = choose(this, name);
        if (context === undefined) done(new Error("no certificate covers the name"));
        else done(null, context);
      },
      handshakeTimeout: deps.handshakeMs ?? handshakeMsDefault,
      sessionTimeout: sessionTimeoutS,
      sessionIdContext,
      minVersion,
      noDelay: true,
    });
    this.server.maxConnections = deps.connectionsMax;
    this.#keysChanged = useTicketKeys(this.server, deps.ticketKeys);
    // Who comes is told by the caller: perhaps a proxy says who it is first.
    const own = this.server.listeners("connection");
    this.server.removeAllListeners("connection");
    this.#wrap = own.map((listener) => (socket: Socket): void => {
      listener.call(this.server, socket);
    });
    this.server.on("secureConnection", (socket: TLSSocket) => this.#welcome(socket));
    this.server.on("OCSPRequest", (leaf: Buffer, _issuer, done) =>
      done(null, deps.staples.find(leaf)),
    );
    this.server.on("tlsClientError", (_error, socket: TLSSocket) => {
      deps.metrics.accel_agent_tls_handshakes_total.inc({ outcome: "failed" });
      socket.destroy();
    });
  }

  /** Takes up changed keys of tickets; to be called whenever they change. */
  ticketKeysChanged(): void {
    this.#keysChanged();
  }

  /** Takes a connection whose first bytes are the handshake. */
  take(arrival: Arrival): void {
    const { socket } = arrival;
    const key = endsOf(socket);
    socket.on("error", () => {}); // Its close tells enough.
    this.#arriving.set(key, arrival);
    socket.once("close", () => this.#arriving.delete(key));
    for (const wrap of this.#wrap) wrap(socket);
  }

  /** Cuts those who have not shaken hands. */
  cut(): void {
    for (const { socket } of this.#arriving.values()) socket.destroy();
  }

  #choose(socket: TLSSocket, name: string): ReturnType<SecureContexts["find"]> {
    const context = this.#deps.contexts.find(name);
    if (context !== undefined) return context;
    this.#deps.metrics.accel_agent_tls_handshakes_total.inc({ outcome: "unknown_name" });
    // OpenSSL has no way to say it from here, and a connection that is just cut would be tried again.
    this.#arriving.get(endsOf(socket))?.socket.write(unrecognizedName);
    return undefined;
  }

  #agree(socket: TLSSocket, offered: readonly string[]): string | undefined {
    const first = protocols.find((one) => offered.includes(one));
    if (first !== "h2") return first;
    const arrival = this.#arriving.get(endsOf(socket));
    if (arrival === undefined || this.#deps.mayUseHttp2(arrival)) return first;
    this.#deps.metrics.accel_agent_http2_withheld_total.inc();
    return protocols.find((one) => one !== "h2" && offered.includes(one));
  }

  #welcome(socket: TLSSocket): void {
    const arrival = this.#arriving.get(endsOf(socket));
    this.#arriving.delete(endsOf(socket));
    if (arrival === undefined) {
      socket.destroy(); // Gone while it was told.
      return;
    }
    const outcome = socket.isSessionReused() ? "resumed" : "full";
    this.#deps.metrics.accel_agent_tls_handshakes_total.inc({ outcome });
    socket.disableRenegotiation();
    const { peer, port } = arrival;
    const secure = peer === undefined ? undefined : { ...peer, scheme: "https" as const };
    const protocol = socket.alpnProtocol === "h2" ? "h2" : "http/1.1";
    this.#deps.admit({ socket, peer: secure, port, headerBytes: 0 }, protocol);
  }
}

function endsOf(socket: Socket): string {
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}
