// Where each connection must begin with a PROXY header: it is read until the header is complete and then goes on, the bytes behind the header before
// all that follow, to whoever serves the visitor whom it names. Who is no trusted proxy, or sends something else, is cut off.

import type { Socket } from "node:net";
import type { ClientAddresses } from "../../../core/http/client-address.ts";
import { readProxyHeader, type ProxiedVisitor } from "../../../core/http/proxy-protocol.ts";
import type { ProblemLog } from "../records/problem-log.ts";
import type { WorkerMetrics } from "../records/worker-metrics.ts";
import type { Arrival } from "./exchange.ts";

/** Whether each connection begins with a PROXY header. */
export type ProxyProtocol = "off" | "required";

export type ProxyGateDeps = {
  readonly clients: ClientAddresses;
  readonly metrics: WorkerMetrics;
  readonly problems: ProblemLog;
  /** Called while the socket is paused: nothing is lost before somebody listens to it. */
  readonly admit: (arrival: Arrival) => void;
  /** How long a header may take; 5 s unless told: a proxy sends it with its first packet, and one lost twice comes after 3 s. */
  readonly headerMs?: number | undefined;
  /** Whoever is admitted reads what came behind the header himself: TLS takes it out of a socket that does not flow. */
  readonly leavesPaused?: boolean | undefined;
};

const headerMsDefault = 5_000;

const refusals = {
  untrusted: "a connection without trusted proxy was cut: its peer is not in trusted_proxies",
  invalid: "a proxy's connection was cut: it does not begin with a PROXY header",
  incomplete: "a proxy's connection ended within its PROXY header",
  late: "a proxy's connection was cut: its PROXY header did not come in time",
} as const;

export class ProxyGate {
  readonly #deps: ProxyGateDeps;
  readonly #waiting = new Set<Socket>();

  constructor(deps: ProxyGateDeps) {
    this.#deps = deps;
  }

  /** Takes a socket that was just accepted and that nobody listens to. */
  take(socket: Socket): void {
    socket.on("error", () => {}); // Its close tells enough.
    const proxy = this.#deps.clients.ofPeer(socket.remoteAddress);
    if (proxy === undefined) socket.destroy();
    else if (proxy.isProxied) this.#read(socket);
    else this.#refuse(socket, "untrusted", `the peer is ${proxy.text}`);
  }

  /** Cuts those whose header is not complete. */
  cut(): void {
    for (const socket of this.#waiting) socket.destroy();
  }

  #read(socket: Socket): void {
    let read: Buffer = Buffer.alloc(0);
    const take = (chunk: Buffer): void => {
      read = read.length === 0 ? chunk : Buffer.concat([read, chunk]);
      const header = readProxyHeader(read);
      if (header.kind === "incomplete") return;
      leave();
      if (header.kind === "invalid") this.#refuse(socket, "invalid", header.reason);
      else this.#admit(socket, header.visitor, header.bytes, read.subarray(header.bytes));
    };
    const end = (): void => void socket.destroy();
    const close = (): void => {
      leave();
      // Whoever only looks whether the port is open sends nothing.
      if (read.length > 0) this.#refuse(socket, "incomplete", `after ${read.length} bytes`);
    };
    const late = setTimeout(() => {
      leave();
      this.#refuse(socket, "late", `${read.length} bytes have come`);
    }, this.#deps.headerMs ?? headerMsDefault);
    const leave = (): void => {
      clearTimeout(late);
      this.#waiting.delete(socket);
      socket.off("data", take).off("end", end).off("close", close);
    };
    this.#waiting.add(socket);
    socket.on("data", take).once("end", end).once("close", close);
  }

  #admit(socket: Socket, visitor: ProxiedVisitor | null, headerBytes: number, rest: Buffer): void {
    const { clients, admit } = this.#deps;
    socket.pause();
    if (rest.length > 0) socket.unshift(rest);
    if (visitor === null) {
      const proxy = clients.ofPeer(socket.remoteAddress);
      // Nobody knows who writes the fields of requests on it.
      const peer = proxy === undefined ? undefined : { ...proxy, isProxied: false };
      admit({ socket, peer, port: socket.localPort, headerBytes });
    } else {
      const peer = clients.ofPeer(visitor.address, visitor.isTls ? "https" : "http");
      admit({ socket, peer, port: visitor.port, headerBytes });
    }
    if (!this.#deps.leavesPaused) socket.resume();
  }

  #refuse(socket: Socket, reason: keyof typeof refusals, found: string): void {
    this.#deps.metrics.accel_agent_proxy_header_refused_total.inc({ reason });
    this.#deps.problems.tell("warn", null, refusals[reason], found);
    socket.destroy();
  }
}
