// The certificate that a host shows for a name to a client that trusts one authority.

import { connect } from "node:tls";

/** SHA-256 of the leaf, in hex. Rejects when the handshake fails. */
export async function servedFor(port: number, servername: string, ca: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ port, host: "127.0.0.1", servername, ca }, () => {
    const { fingerprint256 = "" } = socket.getPeerX509Certificate() ?? {};
    resolve(fingerprint256.replaceAll(":", "").toLowerCase());
  });
  socket.once("error", reject);
  return promise.finally(() => socket.destroy());
}
