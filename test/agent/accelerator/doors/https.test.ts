// HTTPS: who is met under which name, what a handshake may be, and that certificates and the keys of tickets change under visitors without hurting one.

import { once } from "node:events";
import { connect } from "node:net";
import type { TLSSocket } from "node:tls";
import { describe, expect, test } from "vitest";
import { until } from "../../../support/until.ts";
import { host, stateOf } from "../edge.ts";
import {
  askSecure,
  fingerprintOf,
  installed,
  shake,
  tableOf,
  visitByHttp2,
} from "../secure-clients.ts";
import { openSecure } from "../secure-stage.ts";

async function met(port: number, servername: string): Promise<string> {
  const socket = await shake(port, { servername });
  const fingerprint = fingerprintOf(socket);
  socket.destroy();
  return fingerprint;
}

describe("a name", () => {
  const exact = installed({ names: ["www.example.com", "example.com"] });
  const wildcard = installed({ names: ["*.example.com"] });

  test.each([
    ["www.example.com", exact],
    ["WWW.Example.COM", exact],
    ["example.com", exact],
    ["shop.example.com", wildcard],
  ])("%s is met by its certificate", async (name, certificate) => {
    await using secure = await openSecure({ certificates: [wildcard, exact] });
    expect(await met(secure.port, name)).toBe(certificate.fingerprint);
  });

  test.each(["deep.shop.example.com", "www.example.org", "com"])(
    "%s is met by nobody, and told so",
    async (name) => {
      await using secure = await openSecure({ certificates: [wildcard, exact] });
      await expect(shake(secure.port, { servername: name })).rejects.toThrow(/unrecognized name/);
      const metrics = await secure.edge.registry.metrics();
      expect(metrics).toContain('tls_handshakes_total{outcome="unknown_name"} 1');
    },
  );

  test("is needed", async () => {
    await using secure = await openSecure({ certificates: [exact] });
    await expect(shake(secure.port, { servername: "" })).rejects.toThrow(/handshake/);
  });

  test("without certificates is met by nobody", async () => {
    await using secure = await openSecure({ certificates: [] });
    await expect(shake(secure.port)).rejects.toThrow(/unrecognized name/);
  });
});

describe("a handshake", () => {
  test.each([
    [["h2", "http/1.1"], "h2"],
    [["http/1.1"], "http/1.1"],
    [["h2"], "h2"],
    [undefined, false],
  ])("that offers %j agrees on %s", async (ALPNProtocols, agreed) => {
    await using secure = await openSecure();
    const socket = await shake(secure.port, ALPNProtocols === undefined ? {} : { ALPNProtocols });
    expect(socket.alpnProtocol).toBe(agreed);
    socket.destroy();
  });

  test("that offers only what is not spoken here fails", async () => {
    await using secure = await openSecure();
    await expect(shake(secure.port, { ALPNProtocols: ["spdy/3"] })).rejects.toThrow(
      /no application protocol/,
    );
  });

  test.each(["TLSv1.2", "TLSv1.3"] as const)("of %s is taken", async (version) => {
    await using secure = await openSecure();
    const socket = await shake(secure.port, { minVersion: version, maxVersion: version });
    expect(socket.getProtocol()).toBe(version);
    socket.destroy();
  });

  test("of an older version is refused", async () => {
    await using secure = await openSecure();
    const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL:@SECLEVEL=0" } as const;
    await expect(shake(secure.port, old)).rejects.toThrow(/version/);
  });

  test.each(["ec", "P-384", "P-521", "rsa", "ed25519"] as const)(
    "with a key of %s is taken",
    async (keyType) => {
      await using secure = await openSecure({
        certificates: [installed({ names: [host], keyType })],
      });
      expect((await askSecure(secure.port, "/")).status).toBe(404);
    },
  );

  test("that is none is cut, and counted", async () => {
    await using secure = await openSecure();
    const socket = connect(secure.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.resume();
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await once(socket, "close");
    const metrics = await secure.edge.registry.metrics();
    expect(metrics).toContain('tls_handshakes_total{outcome="failed"} 1');
  });

  test.each(["in one packet with", "before"])(
    "behind a PROXY header that comes %s it is taken, and tells the visitor",
    async (when) => {
      await using secure = await openSecure({ proxyProtocol: "required", trusted: ["127.0.0.1"] });
      const carrier = connect(secure.port, "127.0.0.1");
      await once(carrier, "connect");
      if (when === "before") {
        carrier.write("PROXY TCP4 192.0.2.9 192.0.2.1 4000 443\r\n");
        await until("the header has gone", () => carrier.bytesWritten > 0);
      } else {
        carrier.cork();
        carrier.write("PROXY TCP4 192.0.2.9 192.0.2.1 4000 443\r\n");
        setImmediate(() => carrier.uncork());
      }
      const socket = await shake(secure.port, { socket: carrier });
      socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      await until("the record", () => secure.edge.records.length === 1);
      expect(secure.edge.records[0]?.client_ip).toBe("192.0.2.9");
      socket.destroy();
    },
  );

  test("is not repeated on a connection", async () => {
    await using secure = await openSecure();
    const socket = await shake(secure.port, { maxVersion: "TLSv1.2" });
    const closed = Promise.withResolvers<void>();
    socket.on("error", () => {}); // Refused in words, or cut.
    socket.once("close", () => closed.resolve());
    socket.renegotiate({}, () => {});
    await closed.promise;
    expect((await askSecure(secure.port, "/")).status).toBe(404);
  });
});

describe("a certificate", () => {
  test("that is exchanged is met by the next visitor, while those before go on", async () => {
    const [one, other] = [installed(), installed()];
    await using secure = await openSecure({ certificates: [one] });
    const { edge, port } = secure;
    await using visitor = await visitByHttp2(port);
    expect((await visitor.ask("/")).status).toBe(404);
    edge.publish({ ...stateOf(2, {}), certificates: tableOf(other) });
    expect(await met(port, host)).toBe(other.fingerprint);
    expect((await visitor.ask("/")).status).toBe(404);
  });

  test("that comes again with the intermediate it lacked is met with it", async () => {
    const whole = installed();
    const [leaf = ""] = whole.chain.split(/(?<=-----END CERTIFICATE-----\n)/);
    await using secure = await openSecure({ certificates: [{ ...whole, chain: leaf }] });
    const { edge, port } = secure;
    // Those who know the root alone cannot trust it.
    await expect(shake(port)).rejects.toThrow(/unable to verify the first certificate/);
    edge.publish({ ...stateOf(2, {}), certificates: tableOf(whole) });
    expect(await met(port, host)).toBe(whole.fingerprint);
    edge.publish({ ...stateOf(3, {}), certificates: tableOf({ ...whole, chain: leaf }) });
    await expect(shake(port)).rejects.toThrow(/unable to verify the first certificate/);
  });

  test("that is taken away is met by nobody", async () => {
    await using secure = await openSecure();
    secure.edge.publish(stateOf(2, {}));
    await expect(shake(secure.port)).rejects.toThrow(/unrecognized name/);
  });

  test("whose key is not its own harms no other", async () => {
    const broken = {
      ...installed({ names: ["b.example.com"] }),
      privateKey: installed().privateKey,
    };
    await using secure = await openSecure({ certificates: [broken, installed()] });
    await expect(shake(secure.port, { servername: "b.example.com" })).rejects.toThrow();
    expect((await askSecure(secure.port, "/")).status).toBe(404);
  });
});

describe("a session", () => {
  const begin = async (port: number): Promise<Buffer> => {
    const socket = await shake(port, { ALPNProtocols: ["http/1.1"], minVersion: "TLSv1.3" });
    const [ticket]: Buffer[] = await once(socket, "session");
    socket.resume().end();
    await once(socket, "close");
    if (ticket === undefined) throw new Error("no ticket");
    return ticket;
  };
  const resume = async (port: number, session: Buffer): Promise<TLSSocket> =>
    shake(port, { ALPNProtocols: ["http/1.1"], minVersion: "TLSv1.3", session });

  test("is resumed, also under the keys before, and no longer under those before them", async () => {
    await using secure = await openSecure();
    const { edge, port } = secure;
    const ticket = await begin(port);
    const isResumed = async (): Promise<boolean> => {
      const socket = await resume(port, ticket);
      const reused = socket.isSessionReused();
      socket.resume().end();
      await once(socket, "close");
      return reused;
    };
    expect(await isResumed()).toBe(true);
    edge.rotateTicketKeys();
    expect(await isResumed()).toBe(true);
    edge.rotateTicketKeys();
    expect(await isResumed()).toBe(false);
    const metrics = await edge.registry.metrics();
    expect(metrics).toContain('tls_handshakes_total{outcome="resumed"} 2');
  });

  test("of TLS 1.2 is resumed", async () => {
    await using secure = await openSecure();
    const first = await shake(secure.port, { maxVersion: "TLSv1.2" });
    const session = first.getSession();
    first.destroy();
    const again = await shake(secure.port, { maxVersion: "TLSv1.2", ...(session && { session }) });
    expect(again.isSessionReused()).toBe(true);
    again.destroy();
  });
});
