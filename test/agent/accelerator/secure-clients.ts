// Visitors by HTTPS: certificates to install, handshakes, and requests over HTTP/1.1 and HTTP/2.

import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import {
  connect as connectHttp2,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { request as httpsRequest } from "node:https";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import {
  encodeCertificates,
  type CertificateTableRef,
  type InstalledCertificate,
} from "../../../src/core/serving/certificate-table.ts";
import { parseSha256 } from "../../../src/core/ids.ts";
import { makeAuthority, type CertificateWanted, type Issued } from "../../support/x509.ts";
import { host, type Asked } from "./edge.ts";

const authority = makeAuthority();
export const ca = authority.root.pem;

/** As the vault installs it: the leaf and its intermediate, issued by `ca`. */
export function installed(wanted: CertificateWanted = { names: [host] }): InstalledCertificate {
  return installedOf(authority.issue(wanted), wanted.names ?? []);
}

export function installedOf(
  { pem, chain, key }: Issued & { readonly chain: string },
  names: readonly string[],
): InstalledCertificate {
  const { fingerprint256, validFrom, validTo } = new X509Certificate(pem);
  const fingerprint = parseSha256(fingerprint256.replaceAll(":", "").toLowerCase());
  if (fingerprint === undefined) throw new TypeError("not a fingerprint");
  return {
    names,
    notBeforeMs: Date.parse(validFrom),
    notAfterMs: Date.parse(validTo),
    fingerprint,
    chain,
    privateKey: key,
  };
}

let tables = 0;

export function tableOf(...certificates: readonly InstalledCertificate[]): CertificateTableRef {
  return encodeCertificates(++tables, certificates);
}

/** Whom a visitor met. */
export function fingerprintOf(socket: TLSSocket): string {
  return socket.getPeerCertificate().fingerprint256.replaceAll(":", "").toLowerCase();
}

/** Node's own type forgets what net.connect is given besides. */
type Visiting = ConnectionOptions & { readonly localAddress?: string };

/** A connection after its handshake. Rejects with what the handshake failed of. */
export async function shake(port: number, options: Visiting = {}): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port, servername: host, ca, ...options });
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  socket.once("error", reject);
  socket.once("close", () => reject(new Error("closed within the handshake")));
  socket.once("secureConnect", () => resolve(socket));
  return promise;
}

export type SecureAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>;
  readonly body: Buffer;
  readonly text: string;
};

/** HTTP/1.1 over a connection of its own. Rejects when the answer breaks off. */
export async function askSecure(
  port: number,
  path: string,
  asked: Asked & { readonly servername?: string } = {},
): Promise<SecureAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<SecureAnswer>();
  const named = asked.host ?? host;
  const request = httpsRequest({
    host: "127.0.0.1",
    port,
    path,
    method: asked.method ?? "GET",
    headers: { host: named, ...asked.headers },
    servername: asked.servername ?? named,
    ca,
    agent: false,
  });
  request.once("error", reject);
  request.once("response", (response) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.once("error", reject);
    response.once("end", () => {
      const body = Buffer.concat(chunks);
      const { statusCode: status = 0, headers } = response;
      resolve({ status, headers, body, text: body.toString() });
    });
  });
  request.end(asked.body);
  return promise;
}

export type Http2Visitor = AsyncDisposable & {
  readonly session: ClientHttp2Session;
  /** Rejects when the answer breaks off. */
  readonly ask: (path: string, asked?: Asked) => Promise<SecureAnswer>;
  readonly begin: (headers: OutgoingHttpHeaders, endStream?: boolean) => ClientHttp2Stream;
};

export async function visitByHttp2(port: number, options: Visiting = {}): Promise<Http2Visitor> {
  const socket = await shake(port, { ALPNProtocols: ["h2"], ...options });
  const session = connectHttp2(`https://${host}`, { createConnection: () => socket });
  session.on("error", () => {}); // Told by its streams.
  await once(session, "connect");
  const begin = (headers: OutgoingHttpHeaders, endStream = true): ClientHttp2Stream => {
    const stream = session.request({ ":authority": host, ...headers }, { endStream });
    stream.on("error", () => {}); // Told by readHttp2, where somebody asks.
    return stream;
  };
  return {
    session,
    begin,
    ask: async (path, { method = "GET", headers = {}, body, host: named = host } = {}) => {
      const head = { ":path": path, ":method": method, ":authority": named, ...headers };
      const stream = begin(head, body === undefined);
      if (body !== undefined) stream.end(body);
      return readHttp2(stream);
    },
    [Symbol.asyncDispose]: async () => {
      if (session.destroyed) return;
      const closed = once(session, "close");
      session.destroy();
      await closed;
    },
  };
}

/** Rejects when the answer breaks off. */
export async function readHttp2(stream: ClientHttp2Stream): Promise<SecureAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<SecureAnswer>();
  const chunks: Buffer[] = [];
  let headers: IncomingHttpHeaders & { ":status"?: number | undefined } = {};
  stream.once("response", (head) => (headers = head));
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  stream.once("error", reject);
  stream.once("aborted", () => reject(new Error("the answer broke off")));
  stream.once("close", () => {
    const { ":status": status } = headers;
    if (status === undefined) {
      reject(new Error(`closed without answer, code ${stream.rstCode}`));
      return;
    }
    const body = Buffer.concat(chunks);
    resolve({ status, headers, body, text: body.toString() });
  });
  return promise;
}
