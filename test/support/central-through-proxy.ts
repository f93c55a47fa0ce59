// Central as many hosts have it: behind TLS with an authority of its own, under a name that only a proxy (CONNECT) can reach.

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import { makeCertificate } from "./x509.ts";

export const centralName = "central.example.test";

export class CentralThroughProxy implements AsyncDisposable {
  readonly caPem: string;
  /** What was asked for: `host:port`, or `refused`. */
  readonly tunnels: string[] = [];
  /** The credentials that it demands; undefined: none. */
  demanded: string | undefined;
  readonly #front: TlsServer;
  readonly #proxy: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(centralPort: number) {
    const { pem, key } = makeCertificate({ names: [centralName] });
    this.caPem = pem;
    this.#front = createTlsServer({ cert: pem, key }, (visitor) => {
      const central = connect(centralPort, "127.0.0.1");
      joined(visitor, central);
    });
    this.#proxy = createServer((_, response) => response.writeHead(405).end());
    this.#proxy.on("connect", (request, socket: Socket) => {
      const given = request.headers["proxy-authorization"];
      const wanted =
        this.demanded && `Basic ${Buffer.from(this.demanded, "utf8").toString("base64")}`;
      if (given !== wanted) {
        this.tunnels.push("refused");
        socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
        return;
      }
      this.tunnels.push(request.url ?? "");
      const { port } = this.#front.address() as AddressInfo;
      const front = connect(port, "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        joined(socket, front);
      });
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      front.once("error", () => socket.destroy());
    });
  }

  static async start(centralPort: number): Promise<CentralThroughProxy> {
    const made = new CentralThroughProxy(centralPort);
    for (const server of [made.#front, made.#proxy]) {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
    }
    return made;
  }

  get address(): string {
    return `127.0.0.1:${(this.#proxy.address() as AddressInfo).port}`;
  }

  /** Ends all tunnels, as a proxy that is started again does. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    this.#proxy.close();
    this.#front.close();
  }
}

function joined(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.pipe(to);
    from.once("error", () => to.destroy());
    from.once("close", () => to.destroy());
  }
}
