// A proxy before an S3 server, which a test makes fail: each request is passed on, answered with an error, left without an answer, or cut off.

import { once } from "node:events";
import { createServer, request as ask, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

export type S3Fault =
  | { readonly kind: "pass" }
  /** Nothing is passed on. */
  | { readonly kind: "status"; readonly status: number; readonly code: string }
  /** Nothing is passed on, and nothing answered. */
  | { readonly kind: "silent" }
  /** The connection ends before anything is passed on. */
  | { readonly kind: "refuse" }
  /** It is done, and the answer gets lost. */
  | { readonly kind: "lost" }
  /** It is done, and the answer does not come. */
  | { readonly kind: "held" }
  /** The body of the answer ends, by the connection's end, after so many bytes; `isSilent`: nothing comes any more, and it stays open. */
  | { readonly kind: "cut"; readonly afterBytes: number; readonly isSilent: boolean };

export type S3Faults = AsyncDisposable & {
  readonly port: number;
  /** Asked for each request. */
  choose: (method: string, path: string) => S3Fault;
};

export const passing: S3Fault = { kind: "pass" };

export async function startS3Faults(targetPort: number): Promise<S3Faults> {
  const server = createServer((request, response) => {
    void serve(request, response).catch(() => response.destroy());
  });
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = "", url = "" } = request;
    const fault = faults.choose(method, url.split("?", 1)[0] ?? "");
    if (fault.kind === "refuse") return void request.socket.destroy();
    const body = await buffer(request);
    if (fault.kind === "silent") return;
    if (fault.kind === "status") {
      response.writeHead(fault.status, { "content-type": "application/xml" });
      response.end(`<Error><Code>${fault.code}</Code><Message>told by the proxy</Message></Error>`);
      return;
    }
    // The host stays: it is signed.
    const onward = ask({
      host: "127.0.0.1",
      port: targetPort,
      method,
      path: url,
      headers: request.headers,
    });
    onward.end(body);
    const [answer] = (await once(onward, "response")) as [IncomingMessage]; // As documented.
    const bytes = await buffer(answer);
    if (fault.kind === "held") return;
    if (fault.kind === "lost") return void request.socket.destroy();
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    if (fault.kind === "cut" && bytes.byteLength > fault.afterBytes) {
      response.write(bytes.subarray(0, fault.afterBytes));
      if (!fault.isSilent) setImmediate(() => request.socket.destroySoon());
      return;
    }
    response.end(method === "HEAD" ? undefined : bytes);
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  const faults: S3Faults = {
    port,
    choose: () => passing,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return faults;
}
