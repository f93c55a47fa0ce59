// A responder of OCSP on loopback whose answers are made by OpenSSL, as a certificate authority's are: good, revoked or of nobody it knows, signed by whom the test
// wants, for as long as it wants.

import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { writeFileSync, readFileSync } from "node:fs";
import { tempDir } from "./temp-dir.ts";
import type { Issued } from "./x509.ts";

export type Status = "good" | "revoked" | "unknown";

export class OcspResponder implements AsyncDisposable {
  /** What is answered in the place of a made answer. */
  instead: { readonly status: number; readonly body: Uint8Array } | undefined;
  asked = 0;
  readonly #temp = tempDir();
  readonly #server: Server;
  readonly #issuer: Issued;
  #signer: Issued;
  readonly #statuses = new Map<string, Status>();
  minutes = 60;

  private constructor(issuer: Issued) {
    this.#issuer = issuer;
    this.#signer = issuer;
    this.#server = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.once("end", () => {
        this.asked++;
        const { status, body } = this.instead ?? {
          status: 200,
          body: this.answer(Buffer.concat(pieces)),
        };
        response.writeHead(status, { "content-type": "application/ocsp-response" }).end(body);
      });
    });
  }

  static async open(issuer: Issued): Promise<OcspResponder> {
    const responder = new OcspResponder(issuer);
    const { promise, resolve } = Promise.withResolvers<void>();
    responder.#server.listen(0, "127.0.0.1", resolve);
    await promise;
    return responder;
  }

  get url(): string {
    // It listens.
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/ocsp`;
  }

  knows({ pem }: Issued, status: Status): void {
    this.#statuses.set(new X509Certificate(pem).serialNumber, status);
  }

  signsAs(signer: Issued): void {
    this.#signer = signer;
  }

  /** Answers a question in DER. */
  answer(question: Uint8Array): Uint8Array {
    const path = (name: string): string => join(this.#temp.path, name);
    const line = (serial: string, status: Status): string =>
      status === "unknown"
        ? ""
        : `${status === "good" ? "V" : "R"}\t990101000000Z\t${status === "good" ? "" : "200101000000Z"}\t${serial}\tunknown\t/CN=x\n`;
    const lines = [...this.#statuses].map(([serial, status]) => line(serial, status));
    writeFileSync(path("index.txt"), lines.join(""));
    writeFileSync(path("ca.pem"), this.#issuer.pem);
    writeFileSync(path("signer.pem"), this.#signer.pem);
    writeFileSync(path("signer.key"), this.#signer.key);
    writeFileSync(path("request.der"), question);
    const files = {
      index: "index.txt",
      CA: "ca.pem",
      rsigner: "signer.pem",
      rkey: "signer.key",
      reqin: "request.der",
      respout: "response.der",
    };
    const args = Object.entries(files).flatMap(([name, file]) => [`-${name}`, path(file)]);
    execFileSync("openssl", ["ocsp", ...args, "-nmin", String(this.minutes)], { stdio: "pipe" });
    return readFileSync(path("response.der"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.closeAllConnections();
    this.#server.close(() => resolve());
    await promise;
    this.#temp[Symbol.dispose]();
  }
}
