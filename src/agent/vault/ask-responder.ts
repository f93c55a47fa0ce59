// Asks a responder of OCSP, by HTTP and without any proxy. Its address comes from a customer's certificate, so it is judged like one: unless private addresses are
// allowed, only public ones are connected to, those that were judged. No redirect is followed.

import { request } from "node:http";
import { isIP } from "node:net";
import { judgedLookup } from "../../base/judged-lookup.ts";
import { isPublicAddress } from "../../core/addresses/public-address.ts";
import { AccelError } from "../../core/faults.ts";

export type AskResponder = (url: string, asked: Uint8Array) => Promise<Uint8Array>;

const withinMs = 10_000;
/** Answers have some 2 KiB. */
const bytesMax = 64 * 1024;

/** Throws OCSP_UNREACHABLE. */
export function askResponder(mayBePrivate: boolean): AskResponder {
  return async (text, asked) => {
    const url = new URL(text);
    const literal = url.hostname.replace(/^\[(.*)\]$/, "$1");
    if (isIP(literal) !== 0 && !mayBePrivate && !isPublicAddress(literal)) throw refused(literal);
    const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
    const outgoing = request(url, {
      method: "POST",
      agent: false,
      headers: { "content-type": "application/ocsp-request", "content-length": asked.length },
      lookup: judgedLookup({ mayBePrivate, refuse: (_name, address) => refused(address) }),
      signal: AbortSignal.timeout(withinMs),
    });
    outgoing.once("error", (error) => reject(unreachable(error.message, error)));
    outgoing.once("response", (response) => {
      const pieces: Buffer[] = [];
      let bytes = 0;
      if (response.statusCode !== 200) {
        outgoing.destroy(new Error(`the answer is ${response.statusCode}`));
        return;
      }
      response.on("data", (piece: Buffer) => {
        bytes += piece.length;
        if (bytes > bytesMax) outgoing.destroy(new Error(`more than ${bytesMax} bytes`));
        else pieces.push(piece);
      });
      response.once("end", () => resolve(Buffer.concat(pieces)));
      response.once("error", (error) => reject(unreachable(error.message, error)));
    });
    outgoing.end(asked);
    return promise;
  };
}

const refused = (address: string): AccelError =>
  unreachable(`${address} is no public address; see \`accelerator.ocsp_stapling\``);

const unreachable = (what: string, cause?: Error): AccelError =>
  new AccelError("OCSP_UNREACHABLE", `the responder of OCSP: ${what}`, { cause });
