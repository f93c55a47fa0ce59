// Looks at a challenge as a directory will: at each address that public DNS has for the host, over plain HTTP, following
// redirects. What it finds wrong costs no attempt at the directory.
//
// Where a host leads is its customer's word. Addresses are judged before anything connects, also behind redirects.

import { Resolver } from "node:dns/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { challengePath } from "../../core/acme/open-challenges.ts";
import { isPublicAddress } from "../../core/addresses/public-address.ts";
import { messageOf, systemCode } from "../../core/faults.ts";

export type SelfCheckSettings = {
  /** DNS servers, `address` or `address:port`; none: those of this host. */
  readonly resolvers: readonly string[];
  /** The port that the directory asks: 80. */
  readonly port: number;
  readonly mayBePrivate: boolean;
  readonly version: string;
  /** Replaces DNS: all addresses of a host. */
  readonly resolve?: (host: string) => Promise<readonly string[]>;
};

export type Looked =
  | { readonly kind: "there" }
  | { readonly kind: "elsewhere"; readonly reason: string };

export type Sought = {
  readonly host: string;
  readonly token: string;
  readonly keyAuthorization: string;
};

/** More addresses than a host has that is meant. */
const addressesMax = 16;
const redirectsMax = 5;
const timeoutMs = 10_000;
/** A host with all its addresses and redirects. */
const hostMsMax = 20_000;
/** A key authorization is 100 bytes; what is longer is something else. */
const bodyBytesMax = 4_096;

/** Errors of a host that has no IPv6: it says nothing about the other side. */
const noRoute: ReadonlySet<string> = new Set(["ENETUNREACH", "EADDRNOTAVAIL", "EHOSTUNREACH"]);

export class SelfCheck {
  readonly #settings: SelfCheckSettings;

  constructor(settings: SelfCheckSettings) {
    this.#settings = settings;
  }

  /** Never rejects: what cannot be looked at is wrong, too. */
  async look(sought: Sought, signal: AbortSignal): Promise<Looked> {
    try {
      return await this.#look(sought, AbortSignal.any([signal, AbortSignal.timeout(hostMsMax)]));
    } catch (error) {
      const reason = `${sought.host} cannot be looked at: ${messageOf(error).slice(0, 200)}`;
      return { kind: "elsewhere", reason };
    }
  }

  async #look(sought: Sought, signal: AbortSignal): Promise<Looked> {
    const { host } = sought;
    const addresses = await this.#addressesOf(host, signal);
    if (typeof addresses === "string") return { kind: "elsewhere", reason: addresses };
    let seen = 0;
    for (const address of addresses) {
      const found = await this.#lookAt(sought, address, signal);
      if (found === "there") seen++;
      else if (found !== "no-route") return { kind: "elsewhere", reason: found };
    }
    if (seen > 0) return { kind: "there" };
    return { kind: "elsewhere", reason: `central has no route to ${addresses.join(", ")}` };
  }

  /** Returns the judged addresses of a host, or what is wrong with them. */
  async #addressesOf(host: string, signal: AbortSignal): Promise<readonly string[] | string> {
    const { mayBePrivate, resolve } = this.#settings;
    if (isIP(host) !== 0)
      return mayBePrivate || isPublicAddress(host) ? [host] : `${host} is a private address`;
    const found = await (resolve?.(host) ?? this.#resolve(host, signal));
    if (typeof found === "string") return found;
    if (found.length > addressesMax) return `${host} has more than ${addressesMax} addresses`;
    const inner = mayBePrivate ? undefined : found.find((address) => !isPublicAddress(address));
    return inner === undefined ? found : `${host} leads to a private address, ${inner}`;
  }

  async #resolve(host: string, signal: AbortSignal): Promise<readonly string[] | string> {
    const { resolvers } = this.#settings;
    const resolver = new Resolver({ timeout: 3_000, tries: 2 });
    if (resolvers.length > 0) resolver.setServers(resolvers);
    const cancel = (): void => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    const [four, six] = await Promise.allSettled([
      resolver.resolve4(host),
      resolver.resolve6(host),
    ]);
    signal.removeEventListener("abort", cancel);
    const found = [four, six].flatMap((one) => (one.status === "fulfilled" ? one.value : []));
    return found.length > 0
      ? found
      : `public DNS has no address for ${host}: ${whyNone(four, six)}`;
  }

  async #lookAt(
    { host, token, keyAuthorization }: Sought,
    first: string,
    signal: AbortSignal,
  ): Promise<string> {
    let url = new URL(`http://${host}${challengePath}${token}`);
    let address = first;
    for (let followed = 0; followed <= redirectsMax; followed++) {
      const answer = await this.#fetch(url, address, signal);
      if (typeof answer === "string") return answer;
      const at = `${url.hostname} at ${address}`;
      const { status, location, body } = answer;
      if (status === 200)
        return body.trimEnd() === keyAuthorization
          ? "there"
          : `${at} answers something else than the challenge: no agent of this domain, or one that was not told`;
      if (status < 300 || status >= 400 || location === undefined)
        return `${at} answers ${status} to the challenge`;
      if (!URL.canParse(location, url)) return `${at} redirects to what is no URL`;
      url = new URL(location, url);
      if (!["http:", "https:"].includes(url.protocol) || url.port !== "")
        return `${at} redirects to ${url.origin}, where no directory follows`;
      const next = await this.#addressesOf(url.hostname.replace(/^\[(.*)\]$/, "$1"), signal);
      if (typeof next === "string") return `${at} redirects, and ${next}`;
      address = next[0] ?? address;
    }
    return `${host} redirects more than ${redirectsMax} times`;
  }

  async #fetch(
    url: URL,
    address: string,
    signal: AbortSignal,
  ): Promise<
    | { readonly status: number; readonly location: string | undefined; readonly body: string }
    | string
  > {
    const { port, version } = this.#settings;
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const isSecure = url.protocol === "https:";
    const ended = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const ask = isSecure ? httpsRequest : httpRequest;
    const asked = ask({
      host: address,
      port: isSecure ? 443 : port,
      path: `${url.pathname}${url.search}`,
      agent: false,
      signal: ended,
      maxHeaderSize: 16_384,
      headers: { host: url.host, "user-agent": `accel-central/${version}`, accept: "*/*" },
      // As directories do: the certificate that is missing cannot vouch for itself (RFC 8555 §8.3).
      ...(isSecure && {
        rejectUnauthorized: false,
        ...(isIP(url.hostname) === 0 && { servername: url.hostname }),
      }),
    });
    asked.on("response", resolve);
    asked.on("error", reject);
    asked.end();
    try {
      const response = await promise;
      const body = await beginningOf(response);
      return { status: response.statusCode ?? 0, location: response.headers.location, body };
    } catch (error) {
      if (isIP(address) === 6 && noRoute.has(systemCode(error) ?? "")) return "no-route";
      const why = ended.aborted ? "does not answer in time" : messageOf(error).slice(0, 200);
      return `${url.hostname} at ${address}, port ${isSecure ? 443 : port}: ${why}`;
    }
  }
}

async function beginningOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > bodyBytesMax) break;
  }
  return Buffer.concat(chunks).toString("latin1");
}

function whyNone(...asked: readonly PromiseSettledResult<unknown>[]): string {
  const reasons = asked.flatMap((one) =>
    one.status === "rejected" ? [systemCode(one.reason) ?? messageOf(one.reason)] : [],
  );
  return [...new Set(reasons)].join(", ");
}
